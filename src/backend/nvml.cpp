// SPDX-License-Identifier: MIT
#include "backend/nvml.hpp"

#include <array>
#include <dlfcn.h>
#include <fstream>
#include <stdexcept>

namespace mgpu {
namespace {

struct NvmlDevice;  // opaque

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

Library open_library(const char* name) {
  Library library(dlopen(name, RTLD_NOW | RTLD_LOCAL));
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

template <class Function>
Function* find_function(const Library& library, const char* name) {
  void* address = dlsym(library.get(), name);
  if (address == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<Function*>(address);
}

/// "NVRM version: NVIDIA UNIX ... x86_64  580.159.04  Release Build ...": the first word of digits
/// and points.
std::string kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return {};
}

}  // namespace

// Declared here because toolkits do not always bring nvml.h. All return nvmlReturn_t, 0 for
// success.
struct Nvml::Functions {
  explicit Functions(const char* name) : library(open_library(name)) {}

  Library library;
  int (*init)() = find_function<int()>(library, "nvmlInit_v2");
  int (*shutdown)() = find_function<int()>(library, "nvmlShutdown");
  const char* (*error_string)(int) = find_function<const char*(int)>(library, "nvmlErrorString");
  int (*driver_version)(char*, unsigned) =
      find_function<int(char*, unsigned)>(library, "nvmlSystemGetDriverVersion");
  int (*by_uuid)(const char*, NvmlDevice**) =
      find_function<int(const char*, NvmlDevice**)>(library, "nvmlDeviceGetHandleByUUID");
  int (*mig_mode)(NvmlDevice*, unsigned*, unsigned*) =
      find_function<int(NvmlDevice*, unsigned*, unsigned*)>(library, "nvmlDeviceGetMigMode");
};

Nvml::Nvml(const char* library) {
  try {
    auto functions = std::make_unique<Functions>(library);
    if (const int status = functions->init(); status != 0)
      throw std::runtime_error(functions->error_string(status));
    functions_ = std::move(functions);
    state_ = "available";
  } catch (const std::runtime_error& error) {
    state_ = std::string("unavailable: ") + error.what();
  }
}

Nvml::~Nvml() {
  if (functions_) functions_->shutdown();
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (functions_ && functions_->driver_version(text.data(), text.size()) == 0) return text.data();
  return kernel_module_version();
}

Nvml::Identity Nvml::identify(const std::string& uuid) const {
  NvmlDevice* device = nullptr;
  if (functions_ && functions_->by_uuid(("GPU-" + uuid).c_str(), &device) == 0) {
    // Where MIG is on, CUDA has nothing but instances, whichever of the two UUIDs it gives.
    unsigned current = 0, pending = 0;
    const bool known = functions_->mig_mode(device, &current, &pending) == 0;
    return {"GPU-" + uuid, known && current == 1};
  }
  if (functions_ && functions_->by_uuid(("MIG-" + uuid).c_str(), &device) == 0)
    return {"MIG-" + uuid, true};
  return {"GPU-" + uuid, false};
}

}  // namespace mgpu
