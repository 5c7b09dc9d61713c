// SPDX-License-Identifier: MIT
// NVML, loaded at run time. Absent is normal: then `state` says why and the rest answers as far as
// it can. Throws nothing.
#pragma once

#include "backend/backend.hpp"
#include "backend/nvml_links.hpp"
#include "model/evidence.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

  /// The state of a device now, by its Identity::uuid; nullopt without NVML or the device.
  /// Blocking: a dozen calls of the driver, each from microseconds to milliseconds, so never inside
  /// a sample. What NVML cannot tell is absent: most of it for a MIG instance. `present`: this
  /// process has a context there; without one, every process there is another.
  std::optional<Telemetry> telemetry(const std::string& uuid, bool present = true) const;

  /// Processes with a context on a device that are not this one, the largest first, each once;
  /// empty without NVML. In a container that hides process numbers this one may be among them.
  std::vector<MemoryHolder> memory_holders(const std::string& uuid) const;

  /// Links of devices, by their Identity::uuid; empty without NVML. Blocking: some ten calls of the
  /// driver a device and a pair.
  NvmlTopology topology(std::span<const std::string> uuids) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  // null where NVML is not usable
  std::string state_;
};

/// Words of nvmlClocksEventReasons bits, lowest bit first. Idle, display clocks and unknown bits
/// have none.
std::vector<std::string> event_reason_words(unsigned long long bits);

/// How many of a GPU's processes are not `ours`. Nullopt where none is ours: then these numbers are
/// of another PID namespace, as in a container, or this process is not on the GPU.
std::optional<int> other_processes(std::span<const unsigned> pids,
                                   const std::function<bool(unsigned pid)>& ours);

}  // namespace mgpu
