// SPDX-License-Identifier: MIT
#include "backend/helpers.hpp"

#include "backend/cpus.hpp"

#include <algorithm>
#include <atomic>

namespace mgpu {
namespace {

constexpr Bytes block_unit = Bytes{64} << 10;

}  // namespace

struct Helpers::Job {
  const Work& work;
  const Bytes bytes, block;
  const std::optional<std::size_t> seat;
  std::size_t inside = 0;  // helpers at it now; guarded by mutex_
  std::atomic<Bytes> next = 0;

  bool drained() const { return next >= bytes; }
  void drain() {
    for (Bytes offset = next.fetch_add(block); offset < bytes; offset = next.fetch_add(block))
      work(offset, std::min(block, bytes - offset));
  }
};

Helpers::Helpers(std::span<const int> cpus, Affinity affinity) {
  jobs_.reserve(64);
  for (std::size_t i = 0; i < cpus.size(); ++i)
    threads_.emplace_back([this, i, affinity, cpu = cpus[i]](const std::stop_token& stop) {
      // Bound one by one: where a CPU is busy Linux wakes several on the same other one, and they
      // gain nothing.
      if (affinity == Affinity::near) bind_thread({&cpu, 1});
      help(i, stop);
    });
}

void Helpers::run(Bytes bytes, std::optional<std::size_t> seat, const Work& work) {
  // Blocks small enough that a thread which loses its CPU delays the others little.
  const Bytes block =
      std::clamp(bytes / (8 * count()) / block_unit * block_unit, block_unit, 64 * block_unit);
  Job job{work, bytes, block, seat};
  std::unique_lock lock(mutex_);
  jobs_.push_back(&job);
  lock.unlock();
  work_.notify_all();
  if (seat) job.drain();
  lock.lock();
  done_.wait(lock, [&] { return job.drained() && job.inside == 0; });
  std::erase(jobs_, &job);
}

void Helpers::help(std::size_t seat, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  auto job = jobs_.end();
  const auto found = [&] {
    job = std::ranges::find_if(jobs_,
                               [seat](const Job* j) { return !j->drained() && j->seat != seat; });
    return job != jobs_.end();
  };
  while (work_.wait(lock, stop, found)) {
    Job& mine = **job;
    ++mine.inside;
    lock.unlock();
    mine.drain();
    lock.lock();
    if (--mine.inside == 0) done_.notify_all();
  }
}

}  // namespace mgpu
