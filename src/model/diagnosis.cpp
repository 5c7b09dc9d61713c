// SPDX-License-Identifier: MIT
#include "model/diagnosis.hpp"

#include "model/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu {
namespace {

constexpr double least_share = 0.02;     // of the median; below it nothing is worth a line
constexpr double slow_clock = 0.98;      // of the highest SM clock
constexpr double migrated_share = 0.01;  // of the bytes copied, per sample

bool shared_array(const Case& what) {
  const auto one_array = [](const Place& place) {
    return place.kind == Place::Kind::device || place.kind == Place::Kind::node;
  };
  return what.split > 1 &&
         (what.memory == MemoryKind::managed || one_array(what.from) || one_array(what.to));
}

bool away_from_home(const Case& what) {
  if (what.memory == MemoryKind::managed && what.advise != Advice::preferred &&
      what.advise != Advice::accessed_by)
    return false;
  // Two places that differ were asked for because of the link between them.
  if (what.from != what.to) return false;
  return what.to.on_host() ||
         std::ranges::any_of(what.gpus, [&](int gpu) { return !site_of(what.to, gpu).is(gpu); });
}

std::string describe_policy(const CaseResult& result, CauseKind cause) {
  const auto slowest = [&](std::optional<double> DeviceResult::*phase) {
    double most = 0;
    for (const DeviceResult& device : result.per_device)
      most = std::max(most, (device.*phase).value_or(0));
    return format_time_short(most);
  };
  const Case& what = result.what;
  switch (cause) {
    case CauseKind::array_prefetch:
      return fmt::format(
          "both whole arrays are prefetched to the launching device before every copy ({} of host "
          "time in a sample)",
          slowest(&DeviceResult::prefetch_ns));
    case CauseKind::slice_prefetch:
      return fmt::format(
          "every slice is prefetched before every copy ({} of host time in a sample)",
          slowest(&DeviceResult::prefetch_ns));
    case CauseKind::owner_wait:
      return fmt::format(
          "copies of one array wait for each other, though their slices are apart ({} waits)",
          what.owner_wait == OwnerWait::host ? "the host" : "the stream");
    case CauseKind::startup:
      return what.threads == Threads::task ? "threads and streams are made inside the sample"
                                           : "threads are started inside the sample";
    case CauseKind::single_thread:
      return "one thread submits to every device in turn";
    case CauseKind::narrow_access:
      return fmt::format("the kernel moves {} bytes an access", what.access);
    case CauseKind::remote_home:
      if (what.to.on_host())
        return "the arrays are on the host: every access crosses the link to it";
      return fmt::format(
          "the arrays are on device {}: every access of another one crosses the link",
          what.to.index);
    case CauseKind::pageable_staging:
      return "pageable memory is staged: the driver copies it through pinned buffers of its own";
    case CauseKind::shared_block:
      return "slices of two devices meet inside a 2 MiB block, which each takes from the other";
    case CauseKind::cold:
      return "the arrays are brought back to their place before every sample, which then pays the "
             "migration";
    default:
      return std::string(name(cause));
  }
}

class Diagnosis {
 public:
  Diagnosis(const CaseResult& result, const Machine& machine)
      : result_(result), machine_(machine) {}

  std::vector<Cause> causes;

  void judge(const Experiment& experiment) {
    const Summary& with = result_.summary;
    const double cost = with.median - experiment.without.median;
    if (experiment.without.median_high >= with.median_low) return;
    add(experiment.suspect.cause, describe_policy(result_, experiment.suspect.cause), cost,
        experiment.suspect.option);
  }

  void judge_counters() {
    if (!result_.counters) return;
    const Counters& seen = *result_.counters;
    if (seen.throttling_ns > 0)
      add(CauseKind::thrashing,
          fmt::format("devices steal pages from each other: held off them for {} in a sample",
                      format_time_short(seen.throttling_ns)),
          std::min(seen.throttling_ns, result_.summary.median),
          result_.what.prefetch == Prefetch::once ? "" : "--prefetch once");
    // Pages that still move once placed, under no policy that moves them. Faults lie inside the
    // kernel's time, so what they cost is reckoned against the memory's peak.
    const double moved = seen.d2d_bytes + seen.h2d_bytes + seen.d2h_bytes;
    if (explained() || moved <= migrated_share * static_cast<double>(result_.bytes_copied) ||
        peak() == 0)
      return;
    add(CauseKind::migration,
        fmt::format("{} migrate in every sample (reckoned against the memory's peak)",
                    format_memory(static_cast<Bytes>(moved))),
        result_.summary.median - static_cast<double>(result_.bytes_moved) / peak() * 1e9,
        result_.what.prefetch == Prefetch::none ? "--prefetch once" : "");
  }

  void judge_settling() {
    // Without a warm-up the first samples pay the first touch; they count where there are few.
    const auto& samples = result_.samples_ns;
    if (result_.verification.passes == 0 || samples.size() < 2 || !cold_start()) return;
    const double later = *std::ranges::min_element(samples);
    if (samples.front() < 2 * later) return;
    add(CauseKind::migration, "the samples begin before the pages are where they are used",
        result_.summary.median - later, "--warmup 2", Evidence::trend);
  }

  void judge_imbalance() {
    std::vector<const DeviceResult*> busy;
    for (const DeviceResult& device : result_.per_device)
      if (device.device_ns && device.bytes > 0) busy.push_back(&device);
    // Under ten times its own cost a copy's device times are those of its marks.
    if (busy.size() < 2 || result_.samples < 2 || explained() || harness_bound()) return;
    double sum = 0;
    for (const DeviceResult* device : busy) sum += *device->device_ns;
    const auto slowest = *std::ranges::max_element(
        busy, {}, [](const DeviceResult* device) { return *device->device_ns; });
    const double mean = sum / static_cast<double>(busy.size());
    add(CauseKind::imbalance,
        fmt::format("device {} takes {}, all together {} on average", slowest->index,
                    format_time_short(*slowest->device_ns), format_time_short(mean)),
        *slowest->device_ns - mean, "");
  }

  void judge_modes() {
    if (!result_.modes || explained()) return;
    const Modes& modes = *result_.modes;
    add(CauseKind::bimodal,
        fmt::format("{:.0f}% of the samples lie about {}, {:.0f}% about {}", 100 * modes.low_share,
                    format_time_short(modes.low_centre), 100 * modes.high_share,
                    format_time_short(modes.high_centre)),
        modes.high_share * (modes.high_centre - modes.low_centre), "");
  }

  void judge_telemetry() {
    for (const DeviceResult& device : result_.per_device) {
      if (!device.after) continue;
      const Telemetry& state = *device.after;
      if (!state.event_reasons.empty() && state.sm_mhz && state.sm_max_mhz &&
          *state.sm_mhz < slow_clock * *state.sm_max_mhz) {
        std::string reasons;
        for (const std::string& reason : state.event_reasons)
          reasons += (reasons.empty() ? "" : ", ") + reason;
        add(CauseKind::throttled,
            fmt::format("device {} runs at {} of {} MHz ({}), if the clock alone decides",
                        device.index, *state.sm_mhz, *state.sm_max_mhz, reasons),
            result_.summary.median * (1 - double(*state.sm_mhz) / *state.sm_max_mhz), "");
      }
      if (state.other_processes.value_or(0) > 0)
        add(CauseKind::shared_gpu,
            fmt::format(
                "{} other process(es) compute on device {} (the median against the fastest sample)",
                *state.other_processes, device.index),
            result_.summary.median - result_.summary.min, "");
    }
  }

  void judge_size() {
    const bool cached = std::ranges::find(result_.marks, Mark::l2) != result_.marks.end();
    const double from_memory =
        peak() > 0 ? static_cast<double>(result_.bytes_moved) / peak() * 1e9 : 0;
    if (cached && from_memory > result_.summary.median)
      add(CauseKind::cached,
          "the arrays fit into the cache, so this is its rate; from memory it would take longer",
          from_memory - result_.summary.median, "a larger --size");
    if (harness_bound() && result_.harness_ns)
      add(CauseKind::harness,
          fmt::format("starting the copy and waiting for it takes {} of every sample",
                      format_time_short(std::min(*result_.harness_ns, result_.summary.median))),
          std::min(*result_.harness_ns, result_.summary.median), "a larger --size or --batch 16");
  }

 private:
  // A trend over time is evidence that the spread of the samples says nothing against.
  enum class Evidence { level, trend };

  void add(CauseKind word, std::string text, double cost, std::string option,
           Evidence evidence = Evidence::level) {
    const Summary& summary = result_.summary;
    const double share = cost / summary.median;
    const double unsure =
        std::max(summary.median_high - summary.median, summary.median - summary.median_low);
    if (share < least_share || (evidence == Evidence::level && cost <= unsure)) return;
    causes.push_back({word, std::move(text), cost, share, std::move(option)});
  }

  // Whether a policy was found to cost; what it does to devices and modes is not another cause.
  bool explained() const { return !causes.empty(); }

  // Of all devices in use together; 0 where it is not known.
  double peak() const {
    double sum = 0;
    for (const int gpu : result_.what.gpus)
      sum += machine_.devices[static_cast<std::size_t>(gpu)].memory_peak.value_or(0);
    return sum;
  }

  bool harness_bound() const {
    return std::ranges::find(result_.marks, Mark::harness_bound) != result_.marks.end();
  }

  bool cold_start() const {
    return result_.what.memory == MemoryKind::managed &&
           std::ranges::find(result_.marks, Mark::no_warmup) != result_.marks.end();
  }

  const CaseResult& result_;
  const Machine& machine_;
};

}  // namespace

bool shares_block(const Case& what) {
  if (what.memory != MemoryKind::managed) return false;
  for (int i = 1; i < what.split; ++i) {
    const auto& gpus = what.gpus;
    const bool apart = gpus[static_cast<std::size_t>(i - 1) % gpus.size()] !=
                       gpus[static_cast<std::size_t>(i) % gpus.size()];
    const Bytes meeting = slice_bounds(what.size, what.split, i, what.align).first;
    if (apart && meeting > 0 && meeting < what.size && meeting % managed_block != 0) return true;
  }
  return false;
}

std::vector<Suspect> suspects(const Case& what, const Machine& machine) {
  std::vector<Suspect> list;
  const auto suspect = [&](CauseKind cause, std::string option, auto change) {
    Case without = what;
    change(without);
    without.wait = wait_of(without, machine);
    list.push_back({cause, std::move(without), std::move(option)});
  };
  const bool managed = what.memory == MemoryKind::managed;
  if (managed && (what.prefetch == Prefetch::array || what.prefetch == Prefetch::slice))
    suspect(
        what.prefetch == Prefetch::array ? CauseKind::array_prefetch : CauseKind::slice_prefetch,
        "--prefetch once", [](Case& c) { c.prefetch = Prefetch::once, c.prefetch_repeats = 1; });
  if (away_from_home(what)) {
    if (managed)
      suspect(CauseKind::remote_home, "--advise none", [](Case& c) { c.advise = Advice::none; });
    else
      suspect(CauseKind::remote_home,
              what.to.on_host() ? "--memory device --home local" : "--home local", [](Case& c) {
                c.from = c.to = {};
                c.memory = c.source_memory = c.destination_memory = MemoryKind::device;
              });
  }
  const bool pageable =
      what.source_memory == MemoryKind::pageable || what.destination_memory == MemoryKind::pageable;
  if (pageable && machine.backend == BackendKind::cuda)
    suspect(CauseKind::pageable_staging, "--memory pinned", [](Case& c) {
      c.memory = MemoryKind::pinned;
      for (MemoryKind* side : {&c.source_memory, &c.destination_memory})
        if (*side == MemoryKind::pageable) *side = MemoryKind::pinned;
    });
  if (what.cold) suspect(CauseKind::cold, "leaving out --cold", [](Case& c) { c.cold = false; });
  if (what.owner_wait != OwnerWait::none && shared_array(what))
    suspect(CauseKind::owner_wait, "--owner-wait none",
            [](Case& c) { c.owner_wait = OwnerWait::none; });
  if (shares_block(what) && what.size / static_cast<Bytes>(what.split) >= managed_block &&
      machine.backend == BackendKind::cuda)
    suspect(CauseKind::shared_block, "--align 2MiB", [](Case& c) { c.align = managed_block; });
  if (what.threads == Threads::task || what.threads == Threads::spawn)
    suspect(CauseKind::startup, "--threads pool", [](Case& c) { c.threads = Threads::pool; });
  if (what.threads == Threads::single && what.split > 1)
    suspect(CauseKind::single_thread, "--threads pool", [](Case& c) { c.threads = Threads::pool; });
  if (what.engine == Engine::kernel && what.access < 16 && machine.backend == BackendKind::cuda)
    suspect(CauseKind::narrow_access, "--access 16", [](Case& c) { c.access = 16; });
  return list;
}

std::vector<Cause> diagnose(const CaseResult& result, std::span<const Experiment> experiments,
                            const Machine& machine) {
  if (result.samples == 0) return {};
  Diagnosis diagnosis(result, machine);
  for (const Experiment& experiment : experiments) diagnosis.judge(experiment);
  diagnosis.judge_settling();
  diagnosis.judge_counters();
  diagnosis.judge_imbalance();
  diagnosis.judge_modes();
  diagnosis.judge_telemetry();
  diagnosis.judge_size();
  std::ranges::stable_sort(diagnosis.causes, std::ranges::greater{}, &Cause::cost_ns);
  return diagnosis.causes;
}

}  // namespace mgpu
