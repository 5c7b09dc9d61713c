// SPDX-License-Identifier: MIT
// NVML, loaded at run time. Absent is normal: then `state` says why and the rest answers as far as
// it can. Throws nothing.
#pragma once

#include <memory>
#include <string>

namespace mgpu {

class Nvml {
 public:
  explicit Nvml(const char* library =
                    "libnvidia-ml.so.1");  ///< blocking: tens of milliseconds where there are GPUs
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& state() const { return state_; }  ///< "available", or "unavailable: " and why

  /// Of the kernel driver, also without NVML; empty where there is none.
  std::string driver_version() const;

  struct Identity {
    std::string uuid;  ///< "GPU-..." or "MIG-..."
    bool mig = false;
  };
  /// The device that CUDA knows by the 36 characters of this UUID (NVML's order is not CUDA's).
  /// Without NVML: taken for a whole GPU.
  Identity identify(const std::string& uuid) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  // null where NVML is not usable
  std::string state_;
};

}  // namespace mgpu
