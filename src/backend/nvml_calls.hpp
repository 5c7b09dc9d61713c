// SPDX-License-Identifier: MIT
// NVML's binary interface as far as it is used, and the library behind it, loaded at run time.
// Declared here because toolkits do not always bring nvml.h. Asks nothing.
#pragma once

#include <array>
#include <dlfcn.h>
#include <memory>
#include <optional>
#include <stdexcept>

namespace mgpu {

struct NvmlDevice;  // opaque

/// nvmlTemperature_v1_t.
struct NvmlTemperature {
  unsigned version = sizeof(NvmlTemperature) | 1U << 24;
  unsigned sensor = 0;  // the GPU's own
  int celsius = 0;
};
/// nvmlProcessInfo_v2_t.
struct NvmlProcess {
  unsigned pid = 0;
  unsigned long long used_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
/// nvmlPciInfo_t.
struct NvmlPci {
  std::array<char, 16> legacy{};
  unsigned domain = 0, bus = 0, device = 0, id = 0, subsystem = 0;
  std::array<char, 32> text{};
};
/// nvmlFieldValue_t.
struct NvmlField {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency = 0;
  int type = 0, status = 0;
  unsigned long long value = 0;  ///< a union; of type 1 are the first four bytes
};
static_assert(sizeof(NvmlTemperature) == 12 && sizeof(NvmlProcess) == 24 && sizeof(NvmlPci) == 68 &&
              sizeof(NvmlField) == 40);

/// An open library. Throws std::runtime_error with the loader's words.
class NvmlLibrary {
 public:
  explicit NvmlLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw std::runtime_error(dlerror());
  }

  /// Null where the library has none.
  template <class Function>
  Function* seek(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_.get(), name));
  }

  template <class Function>
  Function* find(const char* name) const {
    auto* const function = seek<Function>(name);
    if (function == nullptr) throw std::runtime_error(dlerror());
    return function;
  }

 private:
  struct Close {
    void operator()(void* library) const { dlclose(library); }
  };
  std::unique_ptr<void, Close> handle_;
};

/// A number that a function gives, where the library has it and the GPU supports it.
template <class Value, class Function, class... Kind>
std::optional<Value> ask(Function* function, NvmlDevice* device, Kind... kind) {
  Value value{};
  if (function == nullptr || function(device, kind..., &value) != 0) return std::nullopt;
  return value;
}

inline std::optional<int> as_int(std::optional<unsigned> value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace mgpu
