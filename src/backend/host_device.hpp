// SPDX-License-Identifier: MIT
// A group of CPUs as a device: its threads, and memory. Knows no streams.
#pragma once

#include "backend/backend.hpp"
#include "backend/cpus.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace mgpu {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(const BufferSpec& spec);

  /// The first byte of a part of a HostBuffer. Throws Error{runtime} where the part is not inside.
  static std::byte* data(Part part);

  bool managed() const { return managed_; }
  const Pages& pages() const { return pages_; }

 private:
  bool managed_;
  Bytes bytes_;
  Pages pages_;
};

/// Threads, one bound to each CPU of a device, that share work of any stream of it; asleep while
/// there is none.
class Helpers {
 public:
  /// Called with offset and size of blocks, by several threads at once; must not throw.
  using Work = std::function<void(Bytes, Bytes)>;

  /// Throws std::system_error.
  explicit Helpers(const std::vector<int>& cpus);

  std::size_t count() const { return threads_.size(); }

  /// Blocking; from any thread, several at once. `seat`: the caller works too, on the CPU of that
  /// index, whose helper leaves it alone; without one it sleeps.
  void run(Bytes bytes, std::optional<std::size_t> seat, const Work& work);

 private:
  struct Job;
  void help(std::size_t seat, const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any work_;
  std::condition_variable done_;
  std::vector<Job*> jobs_;
  std::vector<std::jthread> threads_;  // last: stopped and joined before what they use goes
};

struct HostDevice {
  /// `movable`: there are other nodes that memory could be on. Throws std::system_error.
  HostDevice(const CpuGroup& what, bool movable);

  const CpuGroup group;
  const std::optional<int> numa;  ///< that memory can be bound to
  Helpers helpers;
  std::atomic<std::size_t> workers = 0;  ///< made so far: they take the CPUs in turn
};

}  // namespace mgpu
