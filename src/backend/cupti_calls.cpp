// SPDX-License-Identifier: MIT
#include "backend/cupti_calls.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <glob.h>
#include <stdexcept>

namespace mgpu {
namespace {

template <class Function>
void find(Function*& function, void* library, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(fmt::format("the library has no {}", name));
}

CuptiCalls calls_of(void* library) {
  CuptiCalls calls;
  find(calls.register_callbacks, library, "cuptiActivityRegisterCallbacks");
  find(calls.configure, library, "cuptiActivityConfigureUnifiedMemoryCounter");
  find(calls.enable, library, "cuptiActivityEnable");
  find(calls.disable, library, "cuptiActivityDisable");
  find(calls.flush_all, library, "cuptiActivityFlushAll");
  find(calls.next_record, library, "cuptiActivityGetNextRecord");
  find(calls.dropped_records, library, "cuptiActivityGetNumDroppedRecords");
  find(calls.result_string, library, "cuptiGetResultString");
  return calls;
}

std::vector<std::string> files_like(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

}  // namespace

std::string cupti_result(int result, const CuptiCalls& calls) {
  const char* text = nullptr;
  switch (result) {
    case 28:
      text = "unified-memory counters are not supported on this platform";
      break;
    case 29:
      text = "unified-memory counters are not supported on a GPU here";
      break;
    case 30:
      text = "unified-memory counters are not supported where a pair of GPUs has no peer access";
      break;
    case 31:
      text = "unified-memory counters are not supported under MPS";
      break;
    case 35:
      text = "insufficient privileges";
      break;
    default:
      if (calls.result_string(result, &text) != 0 || text == nullptr) text = "unknown error";
  }
  return fmt::format("{} ({})", text, result);
}

std::vector<std::string> cupti_libraries(
    std::string_view cuda_home,
    const std::function<std::vector<std::string>(const std::string& pattern)>& list) {
  constexpr std::array versions = {"libcupti.so.13", "libcupti.so.12"};
  std::vector<std::string> libraries(versions.begin(), versions.end());
  std::vector<std::string> toolkits = {"/usr/local/cuda", "/usr/local/cuda-*"};
  if (!cuda_home.empty()) toolkits.emplace(toolkits.begin(), cuda_home);
  for (const auto& toolkit : toolkits)
    for (const auto* const version : versions)
      for (const auto* const folder : {"extras/CUPTI/lib64", "lib64", "targets/*/lib"}) {
        const auto found = list(fmt::format("{}/{}/{}", toolkit, folder, version));
        libraries.insert(libraries.end(), found.rbegin(), found.rend());  // newest first
      }
  return libraries;
}

CuptiCalls load_cupti(const std::vector<std::string>& libraries) {
  std::string why = "there is no library to load";
  bool is_file = false;
  for (const auto& name : libraries) {
    // Never unloaded: CUPTI 13.0 and 13.1 leave pointers into themselves behind, and CUDA's exit
    // then crashes (https://github.com/icl-utk-edu/papi/pull/594).
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return calls_of(library);
    std::string error = dlerror();
    if (error.starts_with(name + ": ")) error.erase(0, name.size() + 2);
    // Of all failures that of a file that is there tells most, else the first.
    const bool better = !is_file && name.find('/') != std::string::npos;
    if (better || &name == &libraries.front())
      why = fmt::format("{} cannot be loaded: {}", name, error);
    is_file = is_file || better;
  }
  throw std::runtime_error(why);
}

CuptiCalls load_cupti() {
  const char* const home = std::getenv("CUDA_HOME");
  return load_cupti(cupti_libraries(home == nullptr ? "" : home, files_like));
}

}  // namespace mgpu
