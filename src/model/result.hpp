// SPDX-License-Identifier: MIT
// What was found, and nothing of how it is shown. Reports are written from these structs and read
// back into them.
#pragma once

#include "model/error.hpp"
#include "model/evidence.hpp"
#include "model/fleet.hpp"
#include "model/machine.hpp"
#include "model/paths.hpp"
#include "model/plan.hpp"
#include "model/stats.hpp"
#include "model/verdict.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mgpu {

/// A rate of each sample: of its median, of the fastest (max) and of the slowest (min); bytes per
/// second.
struct Rate {
  double median = 0, max = 0, min = 0;
};

struct Rates {
  Rate copied;  ///< bytes of payload
  Rate moved;   ///< read + written
};

/// One device's part of a sample. Times are medians over the samples of the slowest lane of the
/// device.
struct DeviceResult {
  int index = 0;  ///< in Machine::devices
  Bytes bytes = 0;
  int slices = 0;
  std::optional<double> device_ns;  ///< by events around the copy, from the second set of samples
  std::optional<double> device_min_ns, device_max_ns;  ///< of the same samples
  std::optional<double> launch_ns, wait_ns, prefetch_ns,
      sync_ns;                    ///< host time in each kind of call
  std::optional<double> skew_ns;  ///< its start after the first device's start
  std::int64_t event_samples = 0;
  std::optional<double> rate;  ///< bytes of CaseResult::basis per second of device time
  std::optional<double>
      of_peak;  ///< least time its bytes could take (model/paths) over device time
  std::optional<Bottleneck> bottleneck;    ///< what that least time is of
  std::vector<int> cpus;                   ///< those that its threads were bound to
  std::optional<Telemetry> before, after;  ///< the state of the GPU around the samples
};

enum class Direction { forward, reverse };
template <>
inline constexpr auto vocabulary<Direction> = std::to_array<Word<Direction>>({
    {Direction::forward, "forward", "from the source's place to the destination's"},
    {Direction::reverse, "reverse", "the other way at the same time"},
});

/// One way of a bidirectional case.
struct DirectionResult {
  Direction direction = Direction::forward;
  Bytes bytes = 0;                  ///< of payload, per sample
  double time_ns = 0;               ///< median, from the release to the end of its last slice
  std::optional<double> device_ns;  ///< median, from its first slice's start to its last one's end
  double rate = 0;                  ///< payload per second of time_ns
};

/// What wrong data looks like: it names what went wrong on the way.
enum class MismatchKind { never_written, zeroed, stale, corrupt };
template <>
inline constexpr auto vocabulary<MismatchKind> = std::to_array<Word<MismatchKind>>({
    {MismatchKind::never_written, "never-written", "the destination still holds its poison"},
    {MismatchKind::zeroed, "zeroed", "the destination holds zeros"},
    {MismatchKind::stale, "stale", "the destination holds an earlier pass"},
    {MismatchKind::corrupt, "corrupt", "the destination holds something else"},
});

struct Mismatch {
  MismatchKind kind = MismatchKind::corrupt;
  Bytes offset = 0;           ///< of the first wrong byte, in the array
  int expected = 0, got = 0;  ///< that byte
  Bytes count = 0;            ///< wrong bytes in all
  int device = 0;             ///< ordinal that wrote them
  int slice = 0;
};

struct Verification {
  std::int64_t passes_checked = 0, passes = 0;  ///< all passes: warm-up, samples and extra ones
  Bytes bytes = 0;                              ///< checked in each
  std::optional<Mismatch> mismatch;
};

/// What makes a case slow. The word is the JSON's; each has a rule in model/diagnosis.
enum class CauseKind {
  array_prefetch,
  slice_prefetch,
  owner_wait,
  startup,
  single_thread,
  narrow_access,
  remote_home,
  pageable_staging,
  shared_block,
  cold,
  migration,
  thrashing,
  imbalance,
  bimodal,
  throttled,
  shared_gpu,
  cached,
  harness
};
template <>
inline constexpr auto vocabulary<CauseKind> = std::to_array<Word<CauseKind>>({
    {CauseKind::array_prefetch, "array-prefetch", "whole arrays are prefetched at every launch"},
    {CauseKind::slice_prefetch, "slice-prefetch", "slices are prefetched at every launch"},
    {CauseKind::owner_wait, "owner-wait", "copies of one array wait for each other"},
    {CauseKind::startup, "startup", "threads or streams start inside the sample"},
    {CauseKind::single_thread, "single-thread", "one thread submits to all devices"},
    {CauseKind::narrow_access, "narrow-access", "the kernel moves few bytes per access"},
    {CauseKind::remote_home, "remote-home", "every access crosses a link"},
    {CauseKind::pageable_staging, "pageable-staging", "the driver stages pageable memory"},
    {CauseKind::shared_block, "shared-block", "two devices share a 2 MiB block"},
    {CauseKind::cold, "cold", "the arrays are brought back before every sample"},
    {CauseKind::migration, "migration", "pages migrate inside the samples"},
    {CauseKind::thrashing, "thrashing", "devices steal pages from each other"},
    {CauseKind::imbalance, "imbalance", "one device takes longer than the others"},
    {CauseKind::bimodal, "bimodal", "the samples have two modes"},
    {CauseKind::throttled, "throttled", "something holds the clocks down"},
    {CauseKind::shared_gpu, "shared-gpu", "another process computes on a device"},
    {CauseKind::cached, "cached", "the arrays fit into the cache"},
    {CauseKind::harness, "harness", "the copy is small against the cost of starting it"},
});

struct Cause {
  CauseKind word = CauseKind::harness;
  std::string text;       ///< what, with its evidence; lower case, no stop
  double cost_ns = 0;     ///< of the median
  double cost_share = 0;  ///< of the median
  std::string option;  ///< what removes it, as written on the command line; empty: no option does
};

/// One sample of the second set, step by step, for the timeline. Times are ns after the release.
struct TimelineSample {
  std::string which;  ///< "typical" or "worst"
  double wall_ns = 0;
  struct Span {
    int lane = 0, device = 0;
    bool on_device = false;  ///< the stream's work, else the thread's
    std::string what;  ///< "launching kernel" encloses "wait for owner", "prefetch" and "launch";
                       ///< "synchronize", "copy"
    double start_ns = 0, end_ns = 0;
  };
  std::vector<Span> spans;
};

struct CaseResult {
  std::string key;
  Case what;
  OutcomeKind outcome = OutcomeKind::measured;
  std::string reason;                   ///< why skipped or failed
  std::optional<ErrorKind> error_kind;  ///< of what was skipped or failed

  std::int64_t samples = 0;
  std::vector<double> samples_ns;  ///< those stored, in time order
  std::vector<double> settle_ns;   ///< every pass before the first sample, placing included
  std::optional<double> harness_ns;
  std::optional<double>
      run_queue_delay_ns;  ///< host backend: time that threads waited for a CPU during the samples
  Summary summary;
  std::optional<double> event_median_ns;    ///< median wall time of the second set, with events
  Bytes bytes_copied = 0, bytes_moved = 0;  ///< per sample
  Rates rates;
  Basis basis = Basis::moved;     ///< what rates of devices and shares of peaks count
  std::optional<double> of_peak;  ///< least time the bytes could take (model/paths) over the median
  std::optional<Bottleneck> bottleneck;        ///< what that least time is of
  std::vector<DirectionResult> per_direction;  ///< of a bidirectional case
  std::vector<DeviceResult> per_device;
  std::optional<double> weak_efficiency,
      strong_efficiency;          ///< see model/sweep; where the one-device case is in the report
  std::optional<double> overlap;  ///< sum of device times over wall time, of the second set
  std::optional<bool> verified;   ///< nullopt: not checked, or not to the end
  Verification verification;
  std::optional<Counters> counters;      ///< per sample
  std::optional<Modes> modes;            ///< where the samples have two
  std::vector<Cause> causes;             ///< the dearest first
  std::vector<TimelineSample> timeline;  ///< where one was asked for; no part of the document
  std::vector<Mark> marks;
  bool owner_wait_idle = false;  ///< an owner wait was asked for where slices share no array
  std::optional<Expected> expect;
  std::optional<AgainstBaseline> baseline;

  // Of what `show` makes of files; no part of a document.
  std::string file;                   ///< where the result comes from, if there are several
  std::vector<double> round_medians;  ///< of the runs that are shown as this one trial
};

/// What --dry-run shows of a case.
struct PlanEntry {
  Case what;
  std::optional<ErrorKind> error_kind;  ///< where it is skipped
  std::string reason;                   ///< why
  struct LaneSteps {
    int device = 0, slice = 0;
    bool reverse = false;
    Bytes bytes = 0;
    std::vector<std::string> steps;
  };
  std::vector<LaneSteps> lanes;
  struct Memory {
    std::optional<int> device;  ///< ordinal
    std::optional<int> node;    ///< of the host; neither: the host as a whole
    Bytes need = 0;
  };
  std::vector<Memory> memory;
  std::optional<double> estimate_ns;  ///< of the whole case, sampling included
  std::string command;                ///< that measures it alone, where it is part of a topology
};

enum class ReportKind { trials, topology, plan, comparison, fleet };
template <>
inline constexpr auto vocabulary<ReportKind> = std::to_array<Word<ReportKind>>({
    {ReportKind::trials, "trials", "measured cases"},
    {ReportKind::topology, "topology", "what the machine is"},
    {ReportKind::plan, "plan", "what would be measured"},
    {ReportKind::comparison, "comparison", "saved results against others"},
    {ReportKind::fleet, "fleet", "the results of many nodes as one"},
});

struct ErrorInfo {
  ErrorKind kind = ErrorKind::runtime;
  std::string message;
  std::optional<int> device;
};

struct Report {
  ReportKind kind = ReportKind::trials;
  std::string tool_version;
  std::vector<std::string> features;
  std::vector<std::string> command;
  std::string started, ended;  ///< RFC 3339, UTC
  bool complete = true;
  int exit_code = 0;
  std::optional<ErrorInfo> error;
  std::vector<std::string> warnings;
  Machine machine;
  std::vector<CaseResult> cases;
  std::vector<PlanEntry> plan;
  std::optional<double> estimate_ns;  ///< of a plan as a whole, where it is more than its cases
  std::optional<Comparison> comparison;
  std::optional<Fleet> fleet;
};

}  // namespace mgpu
