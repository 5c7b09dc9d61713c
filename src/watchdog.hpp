// SPDX-License-Identifier: MIT
// Ends a run whose step does not return. Makes no device call and unwinds nothing: a hung driver
// would block a destructor too.
#pragma once

#include "model/units.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>

namespace mgpu {

class Watchdog {
 public:
  /// `seconds` that one step may take; 0: no limit.
  explicit Watchdog(double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Called on the watchdog's thread when a step has run out of time, with its name, and the signal
  /// where one shortened its time (else 0). The guarded thread is blocked or will block, so what it
  /// was writing may be read. Set while nothing is armed. The product's handler writes the partial
  /// report and does not return; where it does, disarm throws Error{timeout}.
  void on_expiry(std::function<void(const char* step, int signal)> handler);

  /// Starts and ends a step of the one guarded thread: an atomic store each. `step` must be a
  /// literal.
  void arm(const char* step);
  void disarm();

  /// From any thread: the running step, and each later one, ends within a second from now or
  /// expires.
  void interrupt(int signal);

 private:
  void watch();

  const Nanos limit_;
  std::atomic<Nanos> due_;
  std::atomic<Nanos> interrupted_;  // the latest end of any step after a signal
  std::atomic<int> signal_{0};
  std::atomic<const char*> step_{""};
  std::function<void(const char*, int)> handler_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool quit_ = false, woken_ = false;
  std::atomic<bool> handled_{false};
  std::thread thread_;
};

/// Runs `work` as one step. Throws what it throws, and Error{timeout} where it came back too late.
template <class F>
auto guarded(Watchdog& dog, const char* step, F&& work) {
  struct Armed {
    Watchdog& dog;
    bool done = false;
    ~Armed() {
      if (!done) try {
          dog.disarm();
        } catch (...) {
        }  // the error in flight is the one to report
    }
  } armed{dog};
  dog.arm(step);
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    armed.done = true;
    dog.disarm();
  } else {
    auto result = work();
    armed.done = true;
    dog.disarm();
    return result;
  }
}

}  // namespace mgpu
