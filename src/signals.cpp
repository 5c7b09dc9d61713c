// SPDX-License-Identifier: MIT
#include "signals.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

namespace mgpu {
namespace {

constexpr int patience_ms =
    1900;  // the report is out within a second; this is for what hangs after it

bool ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

}  // namespace

void block_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (signal == SIGHUP && ignored(signal)) continue;
    std::signal(signal, SIG_DFL);  // an ignored signal would be discarded before it could be read
    const sigset_t set = only(signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
}

Signals::Signals(std::function<void(int)> first) : first_(std::move(first)) {
  // Of what is blocked, some may be so by inheritance and none of ours.
  sigset_t blocked, ours;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&blocked, signal) == 1) sigaddset(&ours, signal);
  signal_fd_ = signalfd(-1, &ours, SFD_CLOEXEC);
  quit_fd_ = eventfd(0, EFD_CLOEXEC);
  if (signal_fd_ < 0 || quit_fd_ < 0)
    throw std::system_error(errno, std::generic_category(), "signalfd");
  thread_ = std::thread([this] { watch(); });
}

Signals::~Signals() {
  const std::uint64_t one = 1;
  (void)!write(quit_fd_, &one, sizeof one);
  thread_.join();
  close(signal_fd_);
  close(quit_fd_);
}

void Signals::watch() {
  bool late = false;  // there was nothing left but the report, so no reader is waited for
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{signal_fd_, POLLIN, 0}, pollfd{quit_fd_, POLLIN, 0}};
    const int ready =
        poll(fds.data(), fds.size(), received_ && (late || !settled_) ? patience_ms : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (fds[1].revents) return;
    if (ready == 0) {
      if (settled_ && !late) continue;
      _Exit(128 + received_);
    }
    signalfd_siginfo info{};
    if (read(signal_fd_, &info, sizeof info) != sizeof info) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (received_) die_of(signal);
    received_ = signal;
    late = settled_;
    first_(signal);
  }
}

void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  const sigset_t set = only(signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
  _Exit(128 + signal);
}

}  // namespace mgpu
