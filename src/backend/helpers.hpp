// SPDX-License-Identifier: MIT
// Threads that share the work of one call. Knows neither devices nor memory.
#pragma once

#include "model/units.hpp"
#include "model/words.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

namespace mgpu {

/// Threads, one for each of some CPUs, that share work of anybody who has some; asleep while there
/// is none.
class Helpers {
 public:
  /// Called with offset and size of blocks, by several threads at once; must not throw.
  using Work = std::function<void(Bytes, Bytes)>;

  /// With Affinity::near each is bound to its own CPU. Throws std::system_error.
  Helpers(std::span<const int> cpus, Affinity affinity);

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

}  // namespace mgpu
