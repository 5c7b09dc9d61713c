// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/report.hpp"
#include "sample_report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <sstream>
#include <string>

using namespace mgpu;

namespace {

std::string text_of(const Report& report) {
  return render(Format::text, report);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string without_colors(const std::string& text) {
  std::string plain;
  bool inside = false;
  for (const char c : text) {
    if (c == '\x1b') inside = true;
    if (!inside) plain += c;
    if (c == 'm') inside = false;
  }
  return plain;
}

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(columns_of(line) <= 80);
  }
}

Report mismatched(MismatchKind kind) {
  Report report = sample_report();
  CaseResult& result = report.cases.front();
  result.outcome = OutcomeKind::failed;
  result.error_kind = ErrorKind::verification;
  result.reason = "verification failed";
  result.verified = false;
  result.verification.mismatch = Mismatch{kind, 123'456, 0xab, 0x05, 4096, 1, 1};
  return report;
}

}  // namespace

TEST_CASE("a trial is shown as BenchmarkTools does, with rates for its GC columns", "[text]") {
  CHECK(text_of(sample_report()) ==
        R"(mgpu copy: 100 samples, 2 GPUs, 4 GB managed, prefetch none, owner wait none
 Range (min … max):  100.000 μs …   4.000 ms  ┊ moved: 4.54 TB/s … 2.87 TB/s
 Time  (median):     100.049 μs               ┊ moved: 3.98 TB/s, 41% of peak
 Time  (mean ± σ):   196.046 μs ± 523.368 μs  ┊ copied (median): 1.99 TB/s

  █                                                              
  █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄ ▄
  100 μs        Histogram: log(frequency) by time          3 ms <

 GPU  slices  bytes  device time  launch       rate  of peak
   0       1   2 GB      99.5 μs  4.1 μs  4.02 TB/s      84%
   1       1   2 GB      99.5 μs  4.1 μs  4.02 TB/s      84%
 GPU 0: 00000000:17:00.0  GPU-9a1e0c5d  NVIDIA H200
 GPU 1: 00000000:2A:00.0  GPU-77b2d1aa  NVIDIA H200
 verified 4,000,000,000 bytes in 2 of 105 passes, around every sample
 median: known to ±0.01% (95%)
 modes: 96% at 100 μs, 4% at 2.5 ms
 overlap: 1.99 devices at work at a time (with events: median 100.100 μs)
 settle: the first pass took 153.000 ms
 harness: the same steps without their bytes take 10.600 μs
 counters: per sample 1.50 MB host to device, 9.14 GB device to device (92%
   explicit prefetch, 8% access), 1,400 fault groups, pages held back for 12 μs;
   host -> 0 1.50 MB, 0 -> 1 4.50 GB, 1 -> 0 4.64 GB
 mark L2: source and destination of a device are at most twice its L2 cache
 mark verify-every: checks between the samples change caches and residency
 rates: copied is payload, moved is read + written; 1 GB is 1,000,000,000 bytes
 cause: whole arrays are prefetched to the launching device before every copy;
   costs 95 μs of 100 μs (95%): --prefetch once removes it
 cause: device 1 takes 99.6 μs, 99.5 μs on average; costs 2.5 μs of 100 μs
   (2.5%)
)");
}

TEST_CASE("no line is wider than a terminal of 80 columns", "[text]") {
  Report report =
      GENERATE(sample_report(), sample_host_report(), sample_topology(), sample_plan(),
               mismatched(MismatchKind::never_written), mismatched(MismatchKind::zeroed),
               mismatched(MismatchKind::stale), mismatched(MismatchKind::corrupt));
  for (Device& device : report.machine.devices)
    if (!device.uuid.empty()) device.name = "NVIDIA GeForce RTX 4090";
  for (CaseResult& result : report.cases) {
    Case& what = result.what;
    what.from.kind = what.to.kind = Place::Kind::device;
    what.to.index = 1;
    what.engine = Engine::memcpy;
    what.threads = Threads::task;
    what.owner_wait = OwnerWait::event;
    what.batch = 1000;
    result.owner_wait_idle = true;
    result.samples_ns[0] = 9'999'999.9e6;  // the widest time there is
    result.summary.max = result.summary.sd = result.summary.mean = 9'999'999.9e6;
    result.per_device[0].bytes = 17'592'186'044'401;
    result.per_device[0].prefetch_ns = 123'456;
    result.marks.clear();
    for (const auto& word : vocabulary<Mark>) result.marks.push_back(word.value);
    what.runtime = Runtime::cudajl_5_7_nosync;
    what.prefetch = Prefetch::array;
    what.prefetch_repeats = 2;
    result.counters = Counters{1e15,
                               1e15,
                               1e15,
                               1e15,
                               1e15,
                               1e15,
                               1e15,
                               {1, 1, 1, 1, 1},
                               {{-1, 0, 1}, {0, -1, 1e15}, {0, 1, 1e15}, {1, 0, 1e15}},
                               1};
    result.per_device[1].after =
        Telemetry{100, 1980, 100, 3201, 701, 700, 87, {"sw-power-cap", "hw-thermal-slowdown"}, 12};
  }
  check_width(text_of(report));
}

TEST_CASE("colours are added and nothing else is changed", "[text]") {
  const std::string colored = render(Format::text, sample_report(), {.color = true});
  CHECK(has(colored, "\x1b[1;36m100.000 μs\x1b[0m"));
  CHECK(has(colored, "\x1b[35m  4.000 ms\x1b[0m"));
  CHECK(has(colored, "\x1b[1;34m100.049 μs\x1b[0m"));
  CHECK(has(colored, "\x1b[1;32m196.046 μs\x1b[0m"));
  CHECK(has(colored, "\x1b[32m523.368 μs\x1b[0m"));
  CHECK(has(colored, "\n \x1b[33mcause:\x1b[0m whole arrays"));
  CHECK(without_colors(colored) == text_of(sample_report()));
}

TEST_CASE("colour appears in text alone", "[text][csv][json][markdown]") {
  const auto format = GENERATE(Format::json, Format::jsonl, Format::csv, Format::markdown);
  CHECK(render(format, sample_report(), {.color = true}) == render(format, sample_report()));
}

TEST_CASE("one sample is told without a histogram", "[text]") {
  Report report = sample_report();
  report.cases[0].samples = 1;
  report.cases[0].samples_ns = {100'049.5};
  const std::string text = text_of(report);
  CHECK(has(text, "mgpu copy: 1 sample, 2 GPUs"));
  CHECK(has(text,
            " Single result which took 100.049 μs  ┊ moved: 3.98 TB/s, 41% of peak\n"
            "                                      ┊ copied: 1.99 TB/s\n"));
  CHECK_FALSE(has(text, "Histogram"));
  CHECK_FALSE(has(text, "Range"));
}

TEST_CASE("a file without its samples still shows their summary", "[text]") {
  Report report = sample_report();
  report.cases[0].samples_ns.clear();
  CHECK(has(text_of(report), " Time  (median):     100.049 μs"));
  CHECK_FALSE(has(text_of(report), "Histogram"));
}

TEST_CASE("the forced scale reaches the histogram", "[text]") {
  CHECK(has(render(Format::text, sample_report(), {.histogram = HistogramScale::linear}),
            "Histogram: frequency by time"));
}

TEST_CASE("the header names what is not as by default", "[text]") {
  Case what = sample_report().cases[0].what;
  CHECK(case_phrase(what, BackendKind::host) ==
        "2 CPU devices, 4 GB managed, prefetch none, owner wait none");
  what.memory = what.source_memory = what.destination_memory = MemoryKind::device;
  what.align = 16;
  CHECK(case_phrase(what, BackendKind::cuda) == "2 GPUs, 4 GB device");
  what.gpus = {1};
  what.from = what.to = Place{Place::Kind::device, 0};
  what.engine = Engine::memcpy;
  what.access = 4;
  what.batch = 8;
  what.threads = Threads::spawn;
  what.align = 4;
  what.owner_wait = OwnerWait::host;
  CHECK(case_phrase(what, BackendKind::cuda) ==
        "1 GPU, 4 GB device, home GPU 0, 2 slices, align 4 B, memcpy, access 4, batch 8, owner "
        "wait host, threads spawn");
  what.to.index = 1;
  CHECK(has(case_phrase(what, BackendKind::cuda), "from GPU 0, to GPU 1"));
  what.source_memory = MemoryKind::pinned;
  CHECK(has(case_phrase(what, BackendKind::cuda), "4 GB pinned -> device"));
  what.memory = what.source_memory = what.destination_memory = MemoryKind::managed;
  what.runtime = Runtime::cudajl_5_4;
  what.prefetch = Prefetch::array;
  what.prefetch_repeats = 2;
  what.cold = true;
  what.advise = Advice::accessed_by;
  what.peer = Peer::off;
  const std::string phrase = case_phrase(what, BackendKind::cuda);
  CHECK(has(phrase, "4 GB managed, runtime cudajl-5.4, "));
  CHECK(has(phrase, "prefetch array x 2, cold, "));
  CHECK(has(phrase, "advise accessed-by, "));
  CHECK(has(phrase, "peer off"));
}

TEST_CASE("counters say what is not zero, and that nothing moved", "[text]") {
  Counters counters;
  counters.passes = 5;
  CHECK(counters_phrase(counters) == "no migration");
  counters.fault_groups = 1;
  CHECK(counters_phrase(counters) == "per sample 1 fault group");
  counters.fault_groups = 0.25;
  counters.d2h_bytes = 4096;
  counters.pairs = {{1, -1, 4096}};
  CHECK(counters_phrase(counters) ==
        "per sample 4.10 kB device to host, 0.25 fault groups; 1 -> host 4.10 kB");
  Counters moved;
  moved.d2d_bytes = 1000;
  moved.d2d_by_cause = {996, 4, 0, 0, 0};
  moved.remote_map_bytes = 2e6;
  CHECK(counters_phrase(moved) ==
        "per sample 1.00 kB device to device (100% explicit prefetch), 2.00 MB mapped remotely");
}

TEST_CASE("a device's state is told where it is remarkable", "[text]") {
  DeviceResult device = sample_report().cases[0].per_device[0];
  CHECK(state_phrase(device).empty());
  device.before->event_reasons = {"sw-power-cap"};
  device.after->event_reasons = {"sw-power-cap", "hw-slowdown"};
  CHECK(state_phrase(device) == "held down by sw-power-cap, hw-slowdown (118 of 700 W, 34 °C)");
  device = DeviceResult{};
  CHECK(state_phrase(device).empty());
  device.after = Telemetry{};
  device.after->sm_mhz = 1783;
  device.after->sm_max_mhz = 1980;
  CHECK(state_phrase(device).empty());
  device.after->sm_mhz = 1781;
  device.after->other_processes = 1;
  CHECK(state_phrase(device) == "SM at 1781 of 1980 MHz, 1 other process");
  Report report = sample_report();
  report.cases[0].per_device[1].before->other_processes = 2;
  CHECK(has(text_of(report), "NVIDIA H200\n GPU 1: 2 other processes\n"));
}

TEST_CASE("a cause says what it costs where that is known, and what removes it", "[text]") {
  Cause cause{CauseKind::harness, "the copy is small", 0, 0, ""};
  CHECK(cause_phrase(cause, 1000) == "the copy is small");
  cause.option = "--size 1GiB";
  CHECK(cause_phrase(cause, 1000) == "the copy is small: --size 1GiB removes it");
  cause.cost_ns = 398e6;
  cause.cost_share = 0.995;
  CHECK(cause_phrase(cause, 400e6) ==
        "the copy is small; costs 398 ms of 400 ms (99.5%): --size 1GiB removes it");
}

TEST_CASE("a healthy case has no line of causes, counters, modes or states", "[text]") {
  Report report = sample_report();
  CaseResult& result = report.cases[0];
  result.causes.clear();
  result.counters.reset();
  result.modes.reset();
  const std::string text = text_of(report) + render(Format::markdown, report);
  for (const auto part : {" cause", "Cause", "counters:", "modes:", "MHz", "other process"}) {
    INFO(part);
    CHECK_FALSE(has(text, part));
  }
}

TEST_CASE("the interval of the median is told with two digits at most", "[text]") {
  const auto [high, said] = GENERATE(table<double, std::string>(
      {{100'049.5, "±0.00%"}, {100'349.5, "±0.3%"}, {112'000, "±12%"}, {400'000, "±300%"}}));
  Report report = sample_report();
  report.cases[0].summary.median_low = 100'049.5;
  report.cases[0].summary.median_high = high;
  CHECK(has(text_of(report), " median: known to " + said + " (95%)\n"));
  report.cases[0].samples = 1;
  report.cases[0].samples_ns = {100'049.5};
  CHECK_FALSE(has(text_of(report), "median: known"));
}

TEST_CASE("waits are a column wherever they were asked for", "[text]") {
  Report report = sample_report();
  report.cases[0].what.owner_wait = OwnerWait::host;
  CHECK(has(text_of(report), "device time  launch  waits"));
}

TEST_CASE("a device that only holds the arrays is named too", "[text]") {
  Report report = sample_report();
  report.cases[0].per_device.resize(1);
  CHECK_FALSE(has(text_of(report), "GPU 1:"));
  report.cases[0].what.from = Place{Place::Kind::device, 1};
  CHECK(has(text_of(report), " GPU 1: 00000000:2A:00.0  GPU-77b2d1aa  NVIDIA H200\n"));
}

TEST_CASE("an idle device's row says 0 B", "[text]") {
  Report report = sample_report();
  DeviceResult idle;
  idle.index = 1;
  report.cases[0].per_device[1] = idle;
  CHECK(has(text_of(report), "   1       0    0 B            -       -          -        -\n"));
}

TEST_CASE("wrong data is told with place, bytes, count, device and what may help", "[text]") {
  const std::string text = text_of(mismatched(MismatchKind::zeroed));
  CHECK(has(text, " VERIFICATION FAILED: zeroed: the destination holds zeros\n"));
  CHECK(has(text, "offset 123,456 (0x1e240) of the array, in slice 1"));
  CHECK(has(text, "expected 0xab, got 0x05; 4,096 bytes wrong in all, written by GPU 1"));
  CHECK(has(text, "hint: "));
  CHECK_FALSE(has(text, " verified "));
}

TEST_CASE("what was not verified is not called verified", "[text]") {
  Report report = sample_report();
  report.cases[0].verified.reset();
  CHECK(has(text_of(report), " not verified to the end: 2 of 105 passes checked\n"));
  report.cases[0].verification = {};
  CHECK(has(text_of(report), " not verified\n"));
}

TEST_CASE("an interrupted report says so", "[text]") {
  Report report = sample_report();
  report.complete = false;
  report.exit_code = 130;
  CHECK(text_of(report).ends_with("interrupted by SIGINT: this is what was finished until then\n"));
}

TEST_CASE("a case that did not run is its reason", "[text]") {
  Report report = sample_report();
  CaseResult result;
  result.what = report.cases[0].what;
  result.outcome = OutcomeKind::skipped;
  result.reason = "no second GPU";
  report.cases = {result};
  CHECK(text_of(report) ==
        "mgpu copy: skipped, 2 GPUs, 4 GB managed, prefetch none, owner wait none: no\n second "
        "GPU\n");
}

TEST_CASE("an error before any case is all there is to tell", "[text]") {
  Report report = sample_report();
  report.cases.clear();
  report.error = ErrorInfo{ErrorKind::no_gpu, "there is no NVIDIA driver", {}};
  CHECK(text_of(report) == "error: there is no NVIDIA driver\n");
}

TEST_CASE("a saved file cannot steer the terminal", "[text]") {
  Report report = sample_report();
  report.machine.devices[0].name = "\x1b[2Jgone\xc2\x9b";
  const std::string text = text_of(report);
  CHECK_FALSE(has(text, "\x1b"));
  CHECK_FALSE(has(text, "\xc2\x9b"));
  CHECK(has(text, "?[2Jgone?"));
}

TEST_CASE("a topology shows devices and host", "[text]") {
  const std::string text = text_of(sample_topology());
  CHECK(has(text, " host: 4 CPUs, 2 NUMA nodes, 503 GiB, kernel 5.15.0-100-generic\n"));
  CHECK(has(text, "   1  NVIDIA H200  140 GiB  4.80 TB/s  00000000:2A:00.0     1     2\n"));
}

TEST_CASE("a plan shows lanes, steps, memory and time", "[text]") {
  const std::string text = text_of(sample_plan());
  CHECK(has(text, " GPU 1, slice 1, 2 GB:\n   copy 2 GB\n   synchronise\n"));
  CHECK(has(text, " memory needed: 4 GB on GPU 0, 4 GB on GPU 1, 0 B on the host\n"));
  CHECK(has(text, " time: about 5.5 s\n"));
  CHECK(has(text, "mgpu copy: skipped, "));
}

TEST_CASE("markdown shows a case as a row and its causes below", "[markdown]") {
  Report report = sample_report();
  report.machine.devices[0].name = report.machine.devices[1].name = "a | b";
  const std::string text = render(Format::markdown, report);
  CHECK(has(text, "**mgpu copy** on host node1, 2 x a \\| b, driver 580.159.04, mgpu 0.1.0\n"));
  CHECK(has(
      text,
      "| 2 GPUs, 4 GB managed, prefetch none, owner wait none | 100 | 100.000 μs | 100.049 μs | "
      "196.046 μs ± 523.368 μs | 4.000 ms | 1.99 TB/s | 3.98 TB/s | 41% | yes | L2, verify-every "
      "|\n"));
  CHECK(has(text,
            "\nCauses:\n\n- whole arrays are prefetched to the launching device before every copy; "
            "costs 95 μs of 100 μs (95%): --prefetch once removes it\n- "));
}

TEST_CASE("markdown shows the rounds of a case as rows", "[markdown]") {
  Report report = sample_report();
  report.cases.push_back(report.cases[0]);
  report.cases[1].samples = 77;
  const std::string text = render(Format::markdown, report);
  CHECK(has(text, "owner wait none | 100 |"));
  CHECK(has(text, "owner wait none | 77 |"));
  CHECK(text.find("whole arrays") == text.rfind("whole arrays"));
}
