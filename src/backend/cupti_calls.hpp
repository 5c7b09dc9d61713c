// SPDX-License-Identifier: MIT
// CUPTI's binary interface as far as it is used, and the library behind it, loaded at run time.
// Declared here because toolkits do not always bring cupti.h. Collects nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// CUpti_ActivityUnifiedMemoryCounter2. Since CUPTI 12.8 there are more fields behind these.
struct CuptiRecord {
  std::uint32_t kind = 0;  ///< cupti_unified_memory, or it is a record of something else
  std::uint32_t counter = 0;
  std::uint64_t value = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t address = 0;
  std::uint32_t source = 0, destination = 0;  ///< ordinals of GPUs, 0xFFFFFFFF for the host
  std::uint32_t stream = 0, process = 0;
  std::uint32_t flags = 0;  ///< what they mean depends on the counter
  std::uint32_t reserved = 0;
};
static_assert(sizeof(CuptiRecord) == 64);

constexpr int cupti_unified_memory = 25;  ///< CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER

/// CUpti_ActivityUnifiedMemoryCounterConfig.
struct CuptiConfig {
  std::uint32_t scope = 0;
  std::uint32_t counter = 0;
  std::uint32_t device = 0;
  std::uint32_t enable = 0;
};
static_assert(sizeof(CuptiConfig) == 16);

using CuptiBufferRequest = void (*)(std::uint8_t** buffer, std::size_t* bytes,
                                    std::size_t* max_records);
using CuptiBufferComplete = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                     std::size_t bytes, std::size_t valid_bytes);

/// All return CUptiResult, 0 for success.
struct CuptiCalls {
  int (*register_callbacks)(CuptiBufferRequest, CuptiBufferComplete) = nullptr;
  int (*configure)(CuptiConfig*, std::uint32_t count) = nullptr;
  int (*enable)(int kind) = nullptr;
  int (*disable)(int kind) = nullptr;
  int (*flush_all)(std::uint32_t flag) = nullptr;
  int (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes, void** record) = nullptr;
  int (*dropped_records)(void* context, std::uint32_t stream, std::size_t* dropped) = nullptr;
  int (*result_string)(int result, const char** text) = nullptr;
};

/// "insufficient privileges (35)"; those without words of ours as cuptiGetResultString names them.
std::string cupti_result(int result, const CuptiCalls& calls);

/// What to load, in this order: by the loader's own path, in the toolkit `cuda_home` unless empty,
/// in those below /usr/local. `list` gives the files that match a glob pattern, sorted.
std::vector<std::string> cupti_libraries(
    std::string_view cuda_home,
    const std::function<std::vector<std::string>(const std::string& pattern)>& list);

/// Of the first of these libraries that can be loaded, which is never unloaded. Blocking. Throws
/// std::runtime_error.
CuptiCalls load_cupti(const std::vector<std::string>& libraries);

CuptiCalls load_cupti();  ///< of this machine's libraries, $CUDA_HOME among them

}  // namespace mgpu
