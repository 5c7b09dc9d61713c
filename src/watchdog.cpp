// SPDX-License-Identifier: MIT
#include "watchdog.hpp"

#include "backend/backend.hpp"
#include "model/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace mgpu {
namespace {

constexpr Nanos never = std::numeric_limits<Nanos>::max();  // nothing is armed
constexpr Nanos unlimited = never - 1;                      // armed, and only a signal can end it
constexpr Nanos expired = -1;
constexpr Nanos grace = 1'000'000'000;  // what a step may still take after a signal

}  // namespace

Watchdog::Watchdog(double seconds)
    : limit_(seconds > 0 ? to_nanos(seconds) : never),
      due_(never),
      interrupted_(never),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::on_expiry(std::function<void(const char*, int)> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

void Watchdog::arm(const char* step) {
  step_.store(step, std::memory_order_relaxed);
  const Nanos limit = limit_ == never ? unlimited : steady_now() + limit_;
  Nanos due = std::min(limit, interrupted_.load());
  due_.store(due);
  // A signal between the two lines above found nothing armed.
  const Nanos end = interrupted_.load();
  if (end < due) due_.compare_exchange_strong(due, end);
}

void Watchdog::disarm() {
  if (due_.exchange(never) != expired) return;
  // The watchdog owns the data now; it is this thread's again once the handler has come back.
  handled_.wait(false);
  handled_ = false;
  throw Error(ErrorKind::timeout, fmt::format("{} did not come back in time", step_.load()));
}

void Watchdog::interrupt(int signal) {
  const Nanos end = steady_now() + grace;
  signal_ = signal;
  interrupted_ = end;
  Nanos due = due_.load();
  while (due != expired && due > end && due != never && !due_.compare_exchange_weak(due, end)) {
  }
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_all();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    // A step armed while this sleeps ends no earlier than a whole limit from now, so nothing has to
    // wake it.
    const Nanos now = steady_now();
    Nanos due = due_.load();
    if (due != expired && due <= now && due_.compare_exchange_strong(due, expired)) {
      const auto handler = handler_;
      lock.unlock();
      if (handler) handler(step_.load(), signal_.load());
      handled_ = true;
      handled_.notify_all();
      lock.lock();
      continue;
    }
    Nanos until = std::min({due == expired ? never : due, limit_ == never ? never : now + limit_,
                            interrupted_.load() == never ? never : now + grace / 20});
    const auto ready = [&] { return quit_ || woken_; };
    if (until >= unlimited)
      wake_.wait(lock, ready);
    else
      wake_.wait_for(lock, std::chrono::nanoseconds(until - now), ready);
    woken_ = false;
  }
}

}  // namespace mgpu
