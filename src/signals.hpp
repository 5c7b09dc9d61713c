// SPDX-License-Identifier: MIT
// SIGINT, SIGTERM and SIGHUP as an orderly end. Handlers do nothing: the signals are blocked and
// read by a thread of their own.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace mgpu {

/// Blocks these signals in the calling thread and all that it starts from now on. SIGINT is taken
/// even where it was inherited as ignored (a background job of a script); an ignored SIGHUP stays
/// ignored (nohup).
void block_signals();

/// Listens for what block_signals has blocked, as long as it lives.
class Signals {
 public:
  /// `first` is called with the number of the first signal, on the signals' thread. A second signal
  /// ends the process at once, and so does a process that is still there two seconds after the
  /// first.
  explicit Signals(std::function<void(int)> first);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The report is being written. After a signal that came before, it may take as long as its
  /// readers want, until a second signal; one that comes from now on gives it two seconds.
  void settle() { settled_ = true; }

  int received() const { return received_; }  ///< 0: none

 private:
  void watch();

  std::function<void(int)> first_;
  std::atomic<int> received_{0};
  std::atomic<bool> settled_{false};
  int signal_fd_ = -1, quit_fd_ = -1;
  std::thread thread_;
};

/// Ends the process by the signal, as if it had never been handled.
[[noreturn]] void die_of(int signal);

}  // namespace mgpu
