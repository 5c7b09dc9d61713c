// SPDX-License-Identifier: MIT
#include "trial.hpp"

#include "memory_guard.hpp"
#include "model/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <set>

namespace mgpu {
namespace {

constexpr std::int64_t max_event_samples = 100;
constexpr Nanos between_words = 100'000'000;  // of progress, which disturbs the samples
constexpr double event_share = 0.1;           // of --seconds, for the second set
constexpr std::int64_t harness_samples = 20;
constexpr double harness_seconds = 0.02;
constexpr std::int64_t max_counted_passes = 10;
constexpr Nanos counted_ns = 1'000'000'000;
constexpr Bytes harness_bytes = 4096;
constexpr double harness_bound = 10;  // a median below this many harness costs is marked
constexpr std::uint64_t keys = (1u << 20) - 2;

MismatchKind classify(const Check& found, Pattern expected, std::uint64_t offset,
                      std::uint64_t previous_key) {
  const auto holds = [&](Pattern pattern) {
    const Bytes seen = std::min<Bytes>(found.got.size(), found.bad);
    for (Bytes i = 0; i < seen; ++i)
      if (found.got[i] != pattern_byte(pattern, offset + i)) return false;
    return true;
  };
  if (std::ranges::all_of(found.got, [](unsigned char byte) { return byte == 0; }))
    return MismatchKind::zeroed;
  if (holds({expected.key, true})) return MismatchKind::never_written;
  if (previous_key != expected.key && holds({previous_key, false})) return MismatchKind::stale;
  return MismatchKind::corrupt;
}

// A crew that position() can be asked about for as long as it lives. A lost device may hang its end
// as well as any pass.
class VisibleCrew {
 public:
  VisibleCrew(std::atomic<const Crew*>& slot, Watchdog& dog, Backend& backend, const Case& what,
              const Schedule& schedule, std::span<const std::unique_ptr<Buffer>> buffers)
      : slot_(slot), dog_(dog) {
    guarded(dog_, "opening the streams", [&] { crew_.emplace(backend, what, schedule, buffers); });
    slot_ = &*crew_;
  }
  ~VisibleCrew() {
    slot_ = nullptr;
    try {
      guarded(dog_, "closing the streams", [&] { crew_.reset(); });
    } catch (const Error&) {  // the pass that hung has said so
    }
  }
  VisibleCrew(const VisibleCrew&) = delete;
  VisibleCrew& operator=(const VisibleCrew&) = delete;
  Crew& operator*() { return *crew_; }

 private:
  std::atomic<const Crew*>& slot_;
  Watchdog& dog_;
  std::optional<Crew> crew_;
};

}  // namespace

Trial::Trial(const PlannedCase& planned, const Machine& machine, const Sampling& sampling,
             Backend& backend, Peers& peers, Buffers& pool, Watchdog& dog)
    : what_(planned.what),
      machine_(machine),
      sampling_(sampling),
      backend_(backend),
      peers_(peers),
      pool_(pool),
      dog_(dog),
      schedule_(make_schedule(what_)),
      phases_(schedule_) {
  result_.key = case_key(what_, machine_);
  result_.what = what_;
  result_.marks = planned.marks;
  std::set<int> destinations;
  for (const Lane& lane : schedule_.lanes) {
    result_.verification.bytes += lane.destination.bytes;
    destinations.insert(lane.destination.buffer);
  }
  result_.owner_wait_idle =
      what_.owner_wait != OwnerWait::none && destinations.size() == schedule_.lanes.size();
}

Trial::~Trial() {
  if (!intact_) return;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    pool_.give(schedule_.buffers[i], std::move(buffers_[i]));
}

void Trial::run(Depth depth, const std::stop_token& stop,
                const std::function<void(const std::string&)>& note,
                const std::function<void(const char*, double)>& progress,
                const std::function<void()>& ready) {
  const auto going = [&] { return !stop.stop_requested(); };
  const bool full = depth == Depth::full, checked = full && sampling_.verify != Verify::none;
  progress("allocating", 0);
  connect(note);
  allocate();
  {
    VisibleCrew visible(crew_, dog_, backend_, what_, schedule_, buffers_);
    Crew& crew = *visible;
    progress("placing", 0);
    const Nanos start = backend_.now();
    guarded(dog_, "advising", [&] { crew.advise(); });
    place();
    guarded(dog_, "placing the slices", [&] { crew.setup(); });
    result_.settle_ns.push_back(static_cast<double>(backend_.now() - start));
    for (int i = 0; i < sampling_.warmup && going(); ++i) {
      progress("warming up", static_cast<double>(i) / sampling_.warmup);
      result_.settle_ns.push_back(static_cast<double>(pass(crew, false).wall));
    }
    if (sampling_.warmup > 0 && checked && going()) check();
    if (full) observe_devices(&DeviceResult::before);
    ready();
    sample(crew, stop, progress);
    if (full) observe_devices(&DeviceResult::after);
    if (full && going() && !backend_.marks_are_free()) event_samples(crew, stop, progress);
    if (checked && sampling_.verify == Verify::ends && going()) {
      progress("checking", 1);
      fill_destinations();
      pass(crew, false);
      check();
    }
    if (checked && going()) result_.verified = true;
    if (full && sampling_.counters && going()) count_migrations(crew, note);
  }
  if (full && going()) measure_harness(stop);
  intact_ = true;
}

CaseResult Trial::result() const {
  CaseResult result = result_;
  result.samples = samples_.count();
  if (result.samples == 0) return result;
  result.samples_ns = samples_.stored();
  result.summary = samples_.summary();
  if (samples_.thinned()) result.marks.push_back(Mark::thinned);
  if (result.harness_ns && result.summary.median < harness_bound * *result.harness_ns)
    result.marks.push_back(Mark::harness_bound);
  phases_.summarize(result, what_, machine_);
  for (DeviceResult& device : result.per_device) {
    const auto state = states_.find(device.index);
    if (state == states_.end()) continue;
    device.before = state->second.before;
    device.after = state->second.after;
  }
  result.timeline = timeline_.samples(schedule_.lanes);
  result.modes = two_modes(result.samples_ns);
  if (result.modes) result.marks.push_back(Mark::bimodal);
  const auto any = [&](auto holds) {
    return std::ranges::any_of(result.per_device,
                               [&](const DeviceResult& d) { return d.after && holds(*d.after); });
  };
  if (any([](const Telemetry& state) { return !state.event_reasons.empty(); }))
    result.marks.push_back(Mark::throttled);
  if (any([](const Telemetry& state) { return state.other_processes.value_or(0) > 0; }))
    result.marks.push_back(Mark::shared);
  return result;
}

std::string Trial::position() const {
  const Crew* crew = crew_;
  std::string driven = crew ? crew->position() : std::string{};
  const int touching = touching_;
  if (!driven.empty() || touching < 0) return driven;
  const Lane& lane = schedule_.lanes[static_cast<std::size_t>(touching)];
  return fmt::format("{} of device {}", slice_name(lane), lane.device);
}

void Trial::each_lane(const char* step, const std::function<void(const Lane&)>& work) {
  std::map<int, std::vector<std::size_t>> by_device;
  for (std::size_t i = 0; i < schedule_.lanes.size(); ++i)
    by_device[schedule_.lanes[i].device].push_back(i);
  guarded(dog_, step, [&] {
    // Devices work at the same time, the lanes of one in turn.
    std::vector<std::future<void>> devices;
    for (const auto& [device, lanes] : by_device)
      devices.push_back(std::async(
          backend_.threaded() && by_device.size() > 1 ? std::launch::async : std::launch::deferred,
          [&] {
            for (const std::size_t lane : lanes) {
              touching_ = static_cast<int>(lane);
              work(schedule_.lanes[lane]);
            }
          }));
    for (const auto& device : devices) device.wait();
    for (auto& device : devices) device.get();
  });
  touching_ = -1;
}

void Trial::connect(const std::function<void(const std::string&)>& note) {
  if (machine_.backend == BackendKind::host || schedule_.peers.empty()) return;
  pool_.trim({});  // peer access comes before any allocation
  for (const auto& [device, peer] : schedule_.peers) {
    if (what_.peer == Peer::off) {
      guarded(dog_, "disabling peer access", [&] { peers_.disable(device, peer); });
    } else {
      const auto failure =
          guarded(dog_, "enabling peer access", [&] { return peers_.enable(device, peer); });
      if (!failure) continue;
      if (what_.peer == Peer::on) throw *failure;
      if (what_.engine == Engine::kernel)
        throw Error(ErrorKind::unavailable,
                    fmt::format("{}; without it use --engine memcpy between GPUs, --home local or "
                                "--unified",
                                failure->what()),
                    device);
      note(failure->what());
    }
    if (std::ranges::find(result_.marks, Mark::staged) == result_.marks.end())
      result_.marks.push_back(Mark::staged);
  }
}

void Trial::allocate() {
  // Kept buffers are room too.
  const auto free = [&](const Site& pool) {
    const auto drawn_on = [&](const Site& site) {
      const Site its = pool_of(site, machine_);
      return its == pool || (pool == whole_host && its.on_host());
    };
    return backend_.free_memory(pool) + pool_.kept(drawn_on, schedule_.buffers);
  };
  guarded(dog_, "asking for free memory", [&] {
    try {
      check_memory(what_, machine_, free, sampling_.oversubscribe);
    } catch (const Error& error) {
      if (error.kind != ErrorKind::memory) throw;
      pool_.trim(schedule_.buffers);
      check_memory(what_, machine_, free, sampling_.oversubscribe);
    }
  });
  for (const BufferSpec& spec : schedule_.buffers)
    guarded(dog_, "allocating", [&] { buffers_.push_back(pool_.take(spec)); });
}

// Whoever touches managed memory first has it: each side's place, not the device that copies.
void Trial::place() {
  each_lane("first touch", [&](const Lane& lane) {
    backend_.fill(lane.source_site, part(lane.source), {key_, false}, lane.base);
    backend_.fill(lane.destination_site, part(lane.destination), {key_, true}, lane.base);
  });
}

// A check or a fill runs where the bytes must have arrived; managed pages are touched by the device
// that copies, so that they stay with it.
Site Trial::toucher(const Range& range, int executing, Site home) const {
  const bool managed =
      schedule_.buffers[static_cast<std::size_t>(range.buffer)].kind == MemoryKind::managed;
  return managed ? on_device(executing) : home;
}

void Trial::fill_sources() {
  each_lane("filling", [&](const Lane& lane) {
    backend_.fill(toucher(lane.source, lane.device, lane.source_site), part(lane.source),
                  {key_, false}, lane.base);
  });
}

void Trial::fill_destinations() {
  each_lane("filling", [&](const Lane& lane) {
    backend_.fill(toucher(lane.destination, lane.device, lane.destination_site),
                  part(lane.destination), {key_, true}, lane.base);
  });
}

void Trial::check() {
  ++result_.verification.passes_checked;
  const std::vector<Lane>& lanes = schedule_.lanes;
  std::vector<Check> found(lanes.size());
  each_lane("checking", [&](const Lane& lane) {
    found[static_cast<std::size_t>(&lane - lanes.data())] =
        backend_.check(toucher(lane.destination, lane.device, lane.destination_site),
                       part(lane.destination), {key_, false}, lane.base);
  });
  // Devices check at the same time; of several that find wrong data the first slice's is told.
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (found[i].bad > 0) refuse(lanes[i], found[i]);
}

void Trial::refuse(const Lane& lane, const Check& found) {
  const Pattern expected{key_, false};
  const Bytes offset = lane.base + found.first;
  const Bytes in_array = lane.reverse ? offset - what_.size : offset;
  const Mismatch wrong{classify(found, expected, offset, previous_key_),
                       in_array,
                       pattern_byte(expected, offset),
                       found.got[0],
                       found.bad,
                       lane.device,
                       lane.slice};
  result_.verified = false;
  result_.verification.mismatch = wrong;
  throw Error(
      ErrorKind::verification,
      fmt::format("wrong data: {} bytes of {}, written by device {}, first at offset {}: "
                  "expected 0x{:02x}, got 0x{:02x} ({}){}",
                  wrong.count, slice_name(lane), wrong.device, wrong.offset, wrong.expected,
                  wrong.got, name(wrong.kind),
                  schedule_.peers.empty() ? "" : "; check IOMMU and ACS settings of the peer link"),
      lane.device);
}

PassResult Trial::pass(Crew& crew, bool marks) {
  if (what_.cold) guarded(dog_, "bringing the arrays back", [&] { crew.cool(); });
  const PassResult result = guarded(dog_, "a pass", [&] { return crew.pass(marks); });
  ++result_.verification.passes;
  return result;
}

void Trial::sample(Crew& crew, const std::stop_token& stop,
                   const std::function<void(const char*, double)>& progress) {
  const auto waited = backend_.run_queue_delay();
  const Nanos start = backend_.now();
  const Nanos limit = to_nanos(sampling_.seconds);
  Nanos told = start;
  // Then each time the samples have grown by a fifth: a look costs milliseconds.
  std::int64_t next_look = 50;
  while (!stop.stop_requested()) {
    if (sampling_.verify == Verify::every) {
      previous_key_ = key_;
      key_ = key_ % keys + 1;
      fill_sources();
    }
    const bool marked = backend_.marks_are_free() && samples_.count() < max_event_samples;
    const PassResult one = pass(crew, marked);
    samples_.add(static_cast<double>(one.wall) / what_.batch);
    phases_.add(crew.records(), one, what_.batch);
    if (marked) keep_marks(crew, one);
    if (sampling_.verify == Verify::every) check();
    const Nanos now = backend_.now();
    if (samples_.count() >= sampling_.samples || now - start >= limit) break;
    if (sampling_.until && samples_.count() >= next_look) {
      if (median_settled(samples_.stored(), *sampling_.until)) break;
      next_look = samples_.count() + samples_.count() / 5;
    }
    if (now - told > between_words) {
      told = now;
      progress("sampling", std::max(static_cast<double>(now - start) / static_cast<double>(limit),
                                    static_cast<double>(samples_.count()) /
                                        static_cast<double>(sampling_.samples)));
    }
  }
  const auto waited_after = backend_.run_queue_delay();
  if (waited && waited_after)
    result_.run_queue_delay_ns = static_cast<double>(*waited_after - *waited);
}

void Trial::keep_marks(const Crew& crew, const PassResult& one) {
  phases_.add_marked(crew.records(), one, what_.batch);
  if (sampling_.timeline) timeline_.add(crew.records(), one);
}

void Trial::event_samples(Crew& crew, const std::stop_token& stop,
                          const std::function<void(const char*, double)>& progress) {
  const Nanos start = backend_.now();
  Nanos told = start;
  const Nanos limit = to_nanos(sampling_.seconds * event_share);
  for (std::int64_t i = 0;
       i < std::min(max_event_samples, sampling_.samples) && !stop.stop_requested(); ++i) {
    const PassResult one = pass(crew, true);
    keep_marks(crew, one);
    const Nanos now = backend_.now();
    if (now - start >= limit) break;
    if (now - told > between_words) {
      told = now;
      progress("sampling with events", 1);
    }
  }
}

void Trial::count_migrations(Crew& crew, const std::function<void(const std::string&)>& note) {
  std::int64_t passes = 0;
  const Counted counted = backend_.counted([&] {
    const Nanos start = backend_.now();
    do pass(crew, false);
    while (++passes < max_counted_passes && backend_.now() - start < counted_ns);
  });
  if (const auto* why = std::get_if<std::string>(&counted)) {
    note(*why + ": there are no migration counters");
    return;
  }
  Counters each = std::get<Counters>(counted);
  each.passes = passes;
  const auto divide = [&](auto&... totals) { ((totals /= static_cast<double>(passes)), ...); };
  Counters::ByCause& by = each.d2d_by_cause;
  divide(each.h2d_bytes, each.d2h_bytes, each.d2d_bytes, each.fault_groups, each.thrashing,
         each.throttling_ns, each.remote_map_bytes, by.user, by.coherence, by.prefetch, by.eviction,
         by.access_counter);
  for (Counters::Pair& pair : each.pairs) divide(pair.bytes);
  result_.counters = std::move(each);
}

void Trial::observe_devices(std::optional<Telemetry> DeviceResult::*moment) {
  for (const int gpu : what_.gpus)
    states_[gpu].*moment =
        guarded(dog_, "reading the state of a device", [&] { return backend_.telemetry(gpu); });
}

void Trial::measure_harness(const std::stop_token& stop) {
  const Schedule tiny = truncated(schedule_, harness_bytes);
  VisibleCrew visible(crew_, dog_, backend_, what_, tiny, buffers_);
  Crew& crew = *visible;
  std::vector<double> samples;
  const Nanos start = backend_.now();
  for (std::int64_t i = 0; i < harness_samples && !stop.stop_requested(); ++i) {
    const PassResult one = guarded(dog_, "a pass of the harness", [&] { return crew.pass(false); });
    if (i > 0)
      samples.push_back(static_cast<double>(one.wall) / what_.batch);  // the first one warms up
    if (static_cast<double>(backend_.now() - start) > harness_seconds * 1e9) break;
  }
  if (!samples.empty()) result_.harness_ns = median(std::move(samples));
}

Part Trial::part(const Range& range) const {
  return {buffers_[static_cast<std::size_t>(range.buffer)].get(), range.offset, range.bytes};
}

}  // namespace mgpu
