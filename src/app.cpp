// SPDX-License-Identifier: MIT
#include "app.hpp"

#include "backend/host_facts.hpp"
#include "cli.hpp"
#include "measure.hpp"
#include "model/schedule.hpp"
#include "output.hpp"
#include "report/report.hpp"
#include "signals.hpp"
#include "version.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

namespace mgpu {
namespace {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()) % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms.count());
}

bool wants_color(const Request& request, const Console& console) {
  return request.color == Color::always ||
         (request.color == Color::automatic && console.out_is_terminal && !console.no_color);
}

void print(const Console& console, const std::string& text) {
  const int error = console.out(text);
  // A reader that has seen enough is no failure of ours.
  if (error != 0 && error != EPIPE)
    throw Error(ErrorKind::runtime,
                fmt::format("cannot write to stdout: {}", std::strerror(error)));
}

// One run: the report as it grows, and everything it is written to.
class Run : public Observer {
 public:
  Run(const Request& request, const Console& console) : request_(request), console_(console) {
    report_.tool_version = version;
    report_.features = features();
    report_.command = request.argv;
    report_.started = utc_now();
    report_.machine.backend = request.backend;
    for (const OutputSpec& spec : request.outputs)
      outputs_.emplace_back(spec, request.append, request.force);
    if (draws_trace()) trace_.emplace(OutputSpec{Format::json, request.timeline}, false, true);
  }

  Report& report() { return report_; }

  // --- Observer
  void progress(const Progress& now) override {
    if (request_.quiet || !console_.err_is_terminal) return;
    std::string line = fmt::format("{} {:3.0f}%", now.phase, 100 * std::min(now.share, 1.0));
    if (now.samples > 0) line += fmt::format(", {} samples", now.samples);
    if (now.cases > 1) line = fmt::format("case {} of {}: {}", now.current + 1, now.cases, line);
    console_.err("\r\x1b[K" + line);
    progress_shown_ = true;
  }

  void note(const std::string& text) override {
    report_.warnings.push_back(text);
    if (!request_.quiet) say(fmt::format("mgpu: note: {}\n", text));
  }

  void finished(const CaseResult& result) override {
    report_.cases.push_back(result);
    report_.ended = utc_now();
    for (Output& output : outputs_) {
      if (output.format() == Format::jsonl)
        attempt([&] { output.write(render(Format::jsonl, only(result), options(false))); });
      else if (output.incremental())
        attempt([&] { output.write(render(output.format(), report_, options(false))); });
    }
  }

  void stuck(const std::vector<CaseResult>& cases, const Error& why, int signal) override {
    report_.cases = cases;
    report_.complete = false;
    if (signal) {
      report_.exit_code = 128 + signal;
    } else {
      report_.error = ErrorInfo{why.kind, why.what(), why.device};
      report_.exit_code = exit_code(why.kind);
    }
    if (!cases.empty())
      for (Output& output : outputs_)
        if (output.format() == Format::jsonl)
          attempt([&] { output.write(render(Format::jsonl, only(cases.back()), options(false))); });
    console_.leave(publish());
  }

  /// Writes the report to stdout and to every output, then the error if there is one; gives the
  /// exit code.
  int publish() {
    report_.ended = utc_now();
    clear_progress();
    // Without a result the error says it all; a JSON document holds it.
    const bool nothing = report_.kind == ReportKind::trials && report_.cases.empty();
    if (!nothing || request_.format == Format::json)
      attempt([&] { print(console_, render(request_.format, report_, options(true))); });
    for (Output& output : outputs_)
      if (output.format() != Format::jsonl)
        attempt([&] { output.write(render(output.format(), report_, options(false))); });
    if (trace_ && !nothing) attempt([&] { trace_->write(render_trace(report_)); });
    if (request_.timeline == "-" && !nothing)
      attempt([&] { print(console_, "\n" + render_timeline(report_)); });
    if (report_.error) say(fmt::format("mgpu: error: {}\n", report_.error->message));
    return output_failed_ ? graver(report_.exit_code, exit_code(ErrorKind::runtime))
                          : report_.exit_code;
  }

  void say(const std::string& text) {
    clear_progress();
    console_.err(text);
  }

 private:
  bool draws_trace() const { return !request_.timeline.empty() && request_.timeline != "-"; }

  static std::vector<std::string> features() {
    std::vector<std::string> list;
    if (has_cuda) list.emplace_back("cuda");
    list.emplace_back("hwloc");
    return list;
  }

  Report only(const CaseResult& result) const {
    Report one = report_;
    one.cases = {result};
    return one;
  }

  RenderOptions options(bool for_stdout) const {
    return {for_stdout && wants_color(request_, console_), request_.histogram};
  }

  // An output that cannot be written costs neither the other outputs nor the rest of the run.
  template <class F>
  void attempt(F&& write) {
    try {
      write();
    } catch (const Error& error) {
      if (!output_failed_) say(fmt::format("mgpu: error: {}\n", error.what()));
      output_failed_ = true;
    }
  }

  void clear_progress() {
    if (progress_shown_) console_.err("\r\x1b[K");
    progress_shown_ = false;
  }

  const Request& request_;
  const Console& console_;
  Report report_;
  std::vector<Output> outputs_;
  std::optional<Output> trace_;
  bool progress_shown_ = false, output_failed_ = false;
};

std::unique_ptr<Backend> make_backend(const Request& request,
                                      std::span<const BackendRow> backends) {
  const auto row = std::ranges::find(backends, request.backend, &BackendRow::kind);
  if (row == backends.end())
    throw Error(ErrorKind::no_gpu,
                fmt::format("this mgpu has no {} backend", name(request.backend)));
  return row->make(request.host_devices);
}

PlanEntry plan_entry(const PlannedCase& planned, const Request& request, const Machine& machine) {
  PlanEntry entry;
  entry.what = planned.what;
  if (planned.skip) {
    entry.error_kind = planned.skip->kind;
    entry.reason = planned.skip->reason;
    return entry;
  }
  const Schedule schedule = make_schedule(planned.what);
  for (const Lane& lane : schedule.lanes)
    entry.lanes.push_back(
        {lane.device, lane.slice, lane.destination.bytes, describe_steps(schedule, lane)});
  for (const MemoryNeed& need : memory_needed(planned.what))
    entry.memory.push_back({need.device, need.bytes});
  entry.estimate_ns = estimate_ns(planned.what, machine, request.sampling);
  return entry;
}

std::string read_file(const std::string& path, const Console& console) {
  if (path == "-") return console.in();
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> block;
  while (file.read(block.data(), block.size()) || file.gcount() > 0)
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  // A directory opens and fails at the first read.
  if (!file.is_open() || file.bad())
    throw Error(ErrorKind::usage,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

// Documents of one file that hold one case each are one report.
std::vector<Report> merged(std::vector<Report> documents) {
  std::vector<Report> reports;
  for (Report& document : documents) {
    const bool joins = !reports.empty() && document.kind == ReportKind::trials &&
                       reports.back().kind == ReportKind::trials;
    if (!joins) {
      reports.push_back(std::move(document));
      continue;
    }
    Report& whole = reports.back();
    for (CaseResult& result : document.cases) whole.cases.push_back(std::move(result));
    whole.ended = document.ended;
    whole.complete = whole.complete && document.complete;
    whole.exit_code = graver(whole.exit_code, document.exit_code);
    if (!whole.error) whole.error = document.error;
  }
  return reports;
}

void show(const Request& request, const Console& console) {
  std::vector<Output> outputs;
  for (const OutputSpec& spec : request.outputs)
    outputs.emplace_back(spec, request.append, request.force);
  std::vector<std::string> notes;
  std::vector<Report> reports;
  for (const std::string& path : request.files)
    for (Report& report : merged(read_reports(read_file(path, console), path, notes)))
      reports.push_back(std::move(report));
  const auto needs_one = [](Format format) {
    return format == Format::json || format == Format::csv;
  };
  const bool one_only = needs_one(request.format) ||
                        std::ranges::any_of(request.outputs, [&](const OutputSpec& spec) {
                          return needs_one(spec.format);
                        });
  if (reports.size() > 1 && one_only)
    throw Error(
        ErrorKind::usage,
        "show: one JSON or CSV document holds one report: name one file, or use --format jsonl");
  if (!request.quiet)
    for (const std::string& note : notes) console.err(fmt::format("mgpu: note: {}\n", note));
  const auto all = [&](Format format, bool color) {
    std::string text;
    for (const Report& report : reports) {
      if (!text.empty() && (format == Format::text || format == Format::markdown)) text += "\n";
      text += render(format, report, {color, request.histogram});
    }
    return text;
  };
  print(console, all(request.format, wants_color(request, console)));
  for (Output& output : outputs) output.write(all(output.format(), false));
}

// Fills the run's report as far as it gets.
void run_copy(const Request& request, Run& run, Backend& backend, Watchdog& dog,
              const std::stop_token& stop) {
  Report& report = run.report();
  const Plan plan = make_plan(request, report.machine);
  if (plan.cases.front().skip && request.command == Command::copy)
    throw Error(plan.cases.front().skip->kind, plan.cases.front().skip->reason);
  if (request.dry_run) {
    report.kind = ReportKind::plan;
    for (const PlannedCase& planned : plan.cases) {
      for (const std::string& warning : planned.warnings) run.note(warning);
      report.plan.push_back(plan_entry(planned, request, report.machine));
    }
    return;
  }
  const Results results = measure(plan, report.machine, request.sampling, backend, run, dog, stop);
  report.complete = results.complete;
  if (results.error) throw *results.error;
}

int run_request(const Request& request, const Console& console,
                std::span<const BackendRow> backends) {
  if (request.command == Command::show) {
    show(request, console);
    return 0;
  }
  if (console.handle_signals) block_signals();
  std::stop_source stop;
  Watchdog dog(request.sampling.timeout);
  std::optional<Signals> signals;
  if (console.handle_signals)
    signals.emplace([&](int signal) {
      stop.request_stop();
      dog.interrupt(signal);
    });
  Run run(request, console);
  Report& report = run.report();
  if (request.command == Command::topo) report.kind = ReportKind::topology;
  try {
    dog.on_expiry([&](const char* step, int signal) {
      run.stuck({},
                Error(ErrorKind::timeout,
                      fmt::format("timed out after {} s in {}", request.sampling.timeout, step)),
                signal);
    });
    const auto backend = make_backend(request, backends);
    report.machine = guarded(dog, "starting the driver", [&] { return backend->machine(); });
    if (request.command == Command::copy) run_copy(request, run, *backend, dog, stop.get_token());
  } catch (const Error& error) {
    // What could not be started prints nothing on stdout; what could tells what it found.
    if (error.kind == ErrorKind::usage) throw;
    report.error = ErrorInfo{error.kind, error.what(), error.device};
    report.exit_code = exit_code(error.kind);
  }
  if (report.machine.host.name.empty()) report.machine.host = host_facts();
  if (signals && signals->received()) {
    report.complete = false;
    report.exit_code = 128 + signals->received();
  }
  const int code = run.publish();
  if (signals && signals->received()) {
    const int signal = signals->received();
    signals.reset();
    die_of(signal);
  }
  return code;
}

}  // namespace

int run_app(const std::vector<std::string>& args, const Console& console,
            std::span<const BackendRow> backends) {
  try {
    auto parsed = parse_request(args);
    if (const auto* immediate = std::get_if<Immediate>(&parsed)) {
      print(console, immediate->text);
      return 0;
    }
    return run_request(std::get<Request>(parsed), console, backends);
  } catch (const Error& error) {
    console.err(args.empty() ? std::string(error.what())
                             : fmt::format("mgpu: error: {}\n", error.what()));
    return exit_code(error.kind);
  } catch (const std::exception& error) {
    console.err(fmt::format("mgpu: error: {}\n", error.what()));
    return exit_code(ErrorKind::runtime);
  }
}

}  // namespace mgpu
