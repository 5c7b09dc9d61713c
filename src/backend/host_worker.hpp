// SPDX-License-Identifier: MIT
// A stream of the host backend: a ring of commands and the thread that executes them in order.
#pragma once

#include "backend/backend.hpp"
#include "backend/host_device.hpp"
#include "backend/host_memory.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace mgpu {

class HostWorker final : public Worker {
 public:
  /// All must outlive it; `retired_delay` grows by its thread's run-queue delay as that ends.
  /// Throws std::system_error.
  HostWorker(HostDevice& device, HostMemory& memory, std::atomic<Nanos>& retired_delay);
  ~HostWorker() override;  ///< executes what is queued first

  Nanos begin(Nanos release) override;
  Nanos now() override { return steady_now(); }
  void advise(Part part, Advice advice, Site home) override;
  void prefetch(Part part, Site to) override;
  void copy(Part destination, Part source, Engine engine, int access) override;
  int mark() override;
  void wait_for(Worker& other, OwnerWait how) override;
  void sync() override;
  void anchor() override {}  ///< marks are readings of the clock that now() reads
  Nanos at(int mark) override { return times_.at(static_cast<std::size_t>(mark)); }

 private:
  using Counter = std::atomic<std::uint32_t>;
  struct Command {
    enum class Kind { copy, prefetch, mark, wait, stop } kind = Kind::stop;
    std::byte* destination = nullptr;
    const std::byte* source = nullptr;
    Bytes bytes = 0;
    std::optional<int> node;
    Engine engine = Engine::kernel;
    int access = 16;
    std::size_t mark = 0;
    const Counter* other = nullptr;
    std::uint32_t target = 0;
  };

  static void await(const Counter& counter, std::uint32_t target);
  void submit(const Command& command);
  void execute_all();
  void execute(const Command& command);
  void copy_now(const Command& command);

  HostDevice& device_;
  HostMemory& memory_;
  std::atomic<Nanos>& retired_delay_;
  const std::size_t seat_;  // index of its thread's CPU
  std::vector<Command> ring_;
  std::vector<Nanos> times_;
  int marks_ = 0;
  Counter given_ = 0, done_ = 0;  // commands so far
  std::jthread thread_;           // last: joined before what it uses goes
};

}  // namespace mgpu
