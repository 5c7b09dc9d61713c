// SPDX-License-Identifier: MIT
// A group of CPUs as a device: its threads, and memory. Knows no streams.
#pragma once

#include "backend/backend.hpp"
#include "backend/cpus.hpp"
#include "backend/helpers.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

namespace mgpu {

class HostBuffer final : public Buffer {
 public:
  HostBuffer(MemoryKind kind, Bytes bytes, std::unique_ptr<Pages> pages);

  /// The first byte of a part of a HostBuffer. Throws Error{runtime} where the part is not inside.
  static std::byte* data(Part part);

  bool managed() const { return managed_; }

 private:
  bool managed_;
  Bytes bytes_;
  std::unique_ptr<Pages> pages_;
};

class HostDevice {
 public:
  /// Throws std::system_error.
  HostDevice(const CpuGroup& group, Affinity affinity);
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  /// While none of its workers does anything. Throws std::system_error.
  void set_affinity(Affinity affinity);

  /// The CPUs that threads for it are bound to; none with Affinity::none.
  std::span<const int> cpus() const;
  Helpers& helpers() { return *helpers_; }
  /// The index of a CPU, for a worker: they take them in turn.
  std::size_t next_seat() { return workers_++ % group_.cpus.size(); }

 private:
  const CpuGroup group_;
  Affinity affinity_;
  std::unique_ptr<Helpers> helpers_;
  std::atomic<std::size_t> workers_ = 0;
};

}  // namespace mgpu
