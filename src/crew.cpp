// SPDX-License-Identifier: MIT
#include "crew.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <system_error>

namespace mgpu {
namespace {

constexpr std::size_t max_spans = 64;  // of a lane in a pass; nothing is allocated inside a sample

void pause(Wait how) {
  // Yielding at once costs a spinning pool nothing where each lane has a CPU, and saves it
  // milliseconds where it has not.
  if (how == Wait::block) std::this_thread::yield();
#if defined(__x86_64__)
  else
    __builtin_ia32_pause();
#endif
}

// Until `value` is not `seen`. Between two samples of a spinning crew a thread stays awake for the
// little that the coordinator has to do: one that slept starts its sample with cold caches, which
// costs a microsecond.
void await_change(const std::atomic<unsigned>& value, unsigned seen, Wait how) {
  constexpr int patience = 2000;  // pauses: about a tenth of a millisecond
  for (int i = 0; how == Wait::spin && i < patience; ++i) {
    if (value.load(std::memory_order_acquire) != seen) return;
    pause(how);
  }
  value.wait(seen);
}

const char* range_name(StepKind kind) {
  return kind == StepKind::own        ? "wait for owner"
         : kind == StepKind::prefetch ? "prefetch"
                                      : "launch";
}

// Adds what passes between two readings of a lane's clock to one of its phases.
class Phase {
 public:
  Phase(Worker& worker, LaneRecord& record, Nanos& sum, StepKind kind, bool keep)
      : worker_(worker),
        record_(record),
        sum_(sum),
        kind_(kind),
        keep_(keep),
        start_(worker.now()) {
    worker_.push_range(range_name(kind));
  }
  ~Phase() {
    worker_.pop_range();
    const Nanos end = worker_.now();
    sum_ += end - start_;
    if (keep_ && record_.spans.size() < record_.spans.capacity())
      record_.spans.push_back({kind_, start_, end});
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  Worker& worker_;
  LaneRecord& record_;
  Nanos& sum_;
  StepKind kind_;
  bool keep_;
  Nanos start_;
};

}  // namespace

Crew::Crew(Backend& backend, const Case& what, const Schedule& schedule,
           std::span<const std::unique_ptr<Buffer>> buffers)
    : backend_(backend),
      what_(what),
      schedule_(schedule),
      buffers_(buffers),
      owners_(schedule.buffers.size()),
      slots_(schedule.lanes.size()),
      records_(schedule.lanes.size()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].worker = backend_.open_worker(schedule_.lanes[i].device);
    slots_[i].held.reserve(2);
    records_[i].spans.reserve(max_spans);
  }
  if (what_.threads != Threads::pool || !backend_.threaded()) return;
  try {
    for (std::size_t i = 0; i < slots_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    stop();
    throw Error(ErrorKind::runtime,
                fmt::format("cannot start {} threads: {}", slots_.size(), error.what()));
  }
}

void Crew::stop() {
  quit_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Crew::~Crew() {
  stop();
  // A stream may still wait for another one, so none is closed before all are idle.
  for (Slot& slot : slots_)
    for (Worker* worker : {slot.worker.get(), slot.previous.get()}) {
      if (!worker) continue;
      try {
        worker->begin(backend_.now());
        worker->sync();
      } catch (...) {  // the error that matters was reported by the pass that met it
      }
    }
}

void Crew::advise() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Worker& worker = *slots_[i].worker;
    worker.begin(backend_.now());
    for (const Step& step : schedule_.lanes[i].advice)
      worker.advise(part(step.range), step.advice, step.home);
  }
}

void Crew::setup() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Worker& worker = *slots_[i].worker;
    if (schedule_.lanes[i].setup.empty()) continue;
    worker.begin(backend_.now());
    for (const Step& step : schedule_.lanes[i].setup) worker.prefetch(part(step.range), here(i));
    worker.sync();
  }
}

void Crew::cool() {
  for (const Lane& lane : schedule_.lanes)
    for (const auto& [range, site] : {std::pair{lane.source, lane.source_site},
                                      std::pair{lane.destination, lane.destination_site}}) {
      const int device = site.on_host() ? lane.device : site.index;
      auto& porter = porters_[device];
      if (!porter) porter = backend_.open_worker(device);
      porter->begin(backend_.now());
      porter->prefetch(part(range), site);
    }
  for (const auto& [device, porter] : porters_) porter->sync();
}

PassResult Crew::pass(bool marks) {
  if (slots_.empty()) return {backend_.now(), 0};
  failures_ = 0;
  for (Slot& slot : slots_) {
    slot.failure = nullptr;
    slot.doing.store("starting", std::memory_order_relaxed);
  }
  if (marks) {
    std::set<int> anchored;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (anchored.insert(schedule_.lanes[i].device).second) slots_[i].worker->anchor();
  }
  PassResult result;
  if (!backend_.threaded() || what_.threads == Threads::single) {
    result.release = backend_.now();
    drive(0, slots_.size(), result.release, marks);
    for (const LaneRecord& record : records_)
      result.wall = std::max(result.wall, record.end - result.release);
  } else if (what_.threads == Threads::pool) {
    result = pooled(marks);
  } else {
    result = spawned(marks);
  }
  const auto first = std::ranges::min_element(slots_, {}, [](const Slot& slot) {
    return slot.failure ? slot.failed_at : std::numeric_limits<int>::max();
  });
  // After a failure streams may still wait for one another: all are drained at the end.
  if (first->failure) std::rethrow_exception(first->failure);
  // Owner records named these streams until the pass that has just ended replaced them.
  for (Slot& slot : slots_) slot.previous.reset();
  return result;
}

PassResult Crew::pooled(bool marks) {
  marks_ = marks;
  ready_ = 0;
  running_ = static_cast<unsigned>(slots_.size());
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (unsigned left = running_; left != 0; left = running_)
    await_change(running_, left, what_.wait);
  PassResult result{release_, 0};
  for (const LaneRecord& record : records_)
    result.wall = std::max(result.wall, record.end - result.release);
  return result;
}

PassResult Crew::spawned(bool marks) {
  std::vector<std::thread> threads;
  threads.reserve(slots_.size());
  PassResult result{backend_.now(), 0};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    try {
      threads.emplace_back(
          [this, i, marks, release = result.release] { drive(i, i + 1, release, marks); });
    } catch (const std::system_error& error) {
      slots_[i].failure = std::make_exception_ptr(
          Error(ErrorKind::runtime, fmt::format("cannot start a thread: {}", error.what())));
      slots_[i].failed_at = failures_.fetch_add(1);
    }
  }
  for (std::thread& thread : threads) thread.join();
  result.wall = backend_.now() - result.release;
  return result;
}

void Crew::work(std::size_t lane) {
  for (unsigned seen = 0;;) {
    await_change(epoch_, seen, what_.wait);
    seen = epoch_;
    if (quit_) return;
    // Two phases: waking up costs what it costs, then everybody who is awake is let go by one
    // store. The first lane's thread opens the gate, so that its own start is not late.
    if (lane == 0) {
      ready_.fetch_add(1);
      while (ready_ != slots_.size()) pause(what_.wait);
      release_ = backend_.now();
      gate_ = seen;
    } else {
      ready_.fetch_add(1);
      while (gate_ != seen) pause(what_.wait);
    }
    drive(lane, lane + 1, release_, marks_);
    if (running_.fetch_sub(1) == 1) running_.notify_all();
  }
}

void Crew::drive(std::size_t first, std::size_t last, Nanos release, bool marks) {
  // Never throws: a lane that fails must not keep the others from their synchronise.
  for (std::size_t i = first; i < last; ++i) {
    try {
      submit(i, release, marks);
    } catch (...) {
      fail(i);
    }
  }
  for (std::size_t i = first; i < last; ++i) {
    try {
      if (!slots_[i].failure) finish(i, marks);
    } catch (...) {
      fail(i);
    }
    slots_[i].doing.store(nullptr, std::memory_order_relaxed);
  }
}

void Crew::submit(std::size_t lane, Nanos release, bool marks) {
  const Lane& plan = schedule_.lanes[lane];
  Slot& slot = slots_[lane];
  LaneRecord& record = records_[lane];
  std::vector<LaneSpan> spans = std::move(record.spans);  // keeps what it has reserved
  spans.clear();
  record = {};
  record.spans = std::move(spans);
  if (fresh_streams()) {
    slot.doing.store("opening a stream", std::memory_order_relaxed);
    slot.previous = std::move(slot.worker);
    slot.worker = backend_.open_worker(plan.device);
  }
  Worker& worker = *slot.worker;
  worker.push_range("launching kernel");
  record.start = worker.begin(release);
  bool copied = false, prefetched = false;
  int first_copy_mark = 0;
  for (int execution = 0; execution < what_.batch; ++execution) {
    for (const Step& step : plan.sample) {
      switch (step.kind) {
        case StepKind::own: {
          slot.doing.store("waiting for the owner", std::memory_order_relaxed);
          const Phase phase(worker, record, record.wait, step.kind, marks);
          own(lane, step);
          break;
        }
        case StepKind::prefetch: {
          slot.doing.store("prefetching", std::memory_order_relaxed);
          if (marks && !prefetched && !copied) worker.mark();
          prefetched = true;
          const Phase phase(worker, record, record.prefetch, step.kind, marks);
          worker.prefetch(part(step.range), here(lane));
          break;
        }
        case StepKind::copy: {
          slot.doing.store("launching", std::memory_order_relaxed);
          if (marks && !copied) first_copy_mark = worker.mark();
          const Phase phase(worker, record, record.launch, step.kind, marks);
          copied = true;
          worker.copy(part(step.range), part(step.source), what_.engine, what_.access);
          break;
        }
        case StepKind::release:
          slot.held.clear();
          break;
        case StepKind::advise:
          break;  // given before the memory was touched
      }
    }
  }
  if (marks) {
    worker.mark();
    record.launched = worker.now();
  }
  worker.pop_range();
  slot.copy_mark = first_copy_mark;
}

void Crew::finish(std::size_t lane, bool marks) {
  Slot& slot = slots_[lane];
  LaneRecord& record = records_[lane];
  slot.doing.store("synchronising", std::memory_order_relaxed);
  slot.worker->push_range("synchronize");
  const Nanos start = slot.worker->now();
  slot.worker->sync();
  record.end = slot.worker->now();
  slot.worker->pop_range();
  record.sync = record.end - start;
  if (!marks) return;
  record.device_start = slot.worker->at(slot.copy_mark);
  record.device_end = slot.worker->at(slot.copy_mark + 1);
  if (slot.copy_mark > 0) record.prefetch_start = slot.worker->at(0);
}

void Crew::own(std::size_t lane, const Step& step) {
  Owner& owner = owners_[static_cast<std::size_t>(step.range.buffer)];
  Slot& slot = slots_[lane];
  Worker* self = slot.worker.get();
  if (step.lock == OwnerLock::launch) slot.held.emplace_back(owner.held);
  Worker* before = owner.last.exchange(self);
  if (before && (before != self || step.even_own)) self->wait_for(*before, step.wait);
}

void Crew::fail(std::size_t lane) {
  Slot& slot = slots_[lane];
  slot.failure = std::current_exception();
  slot.failed_at = failures_.fetch_add(1);
  slot.held.clear();
  slot.doing.store(nullptr, std::memory_order_relaxed);
}

Site Crew::here(std::size_t lane) const {
  return on_device(schedule_.lanes[lane].device);
}

Part Crew::part(const Range& range) const {
  return {buffers_[static_cast<std::size_t>(range.buffer)].get(), range.offset, range.bytes};
}

std::string Crew::position() const {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (const char* doing = slots_[i].doing.load(std::memory_order_relaxed))
      return fmt::format("{} on device {} is {}", slice_name(schedule_.lanes[i]),
                         schedule_.lanes[i].device, doing);
  return "";
}

}  // namespace mgpu
