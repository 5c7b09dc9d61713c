// SPDX-License-Identifier: MIT
#include "app.hpp"

#include "backend/host_facts.hpp"
#include "cli.hpp"
#include "measure.hpp"
#include "memory_guard.hpp"
#include "model/schedule.hpp"
#include "output.hpp"
#include "report/report.hpp"
#include "run.hpp"
#include "signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

namespace mgpu {
namespace {

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
    entry.lanes.push_back({lane.device, lane.slice, lane.reverse, lane.destination.bytes,
                           describe_steps(schedule, lane)});
  for (const MemoryNeed& need : memory_needed(planned.what)) {
    const Site pool = pool_of(need.site, machine);
    PlanEntry::Memory memory{std::nullopt, std::nullopt, need.bytes};
    if (!pool.on_host())
      memory.device = pool.index;
    else if (pool != whole_host)
      memory.node = pool.index;
    entry.memory.push_back(memory);
  }
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

// The documents of a .jsonl file that is about to be appended to. What a killed run left behind the
// last line feed is not read: the next line takes its place, so it must be the beginning of a line
// of ours.
std::vector<Report> saved_lines(const std::string& path, const Console& console) {
  constexpr std::string_view ours = R"({"schema":)";
  const std::string text = read_file(path, console);
  const std::size_t whole = text.rfind('\n') + 1;  // 0 where there is none
  const std::string_view fragment = std::string_view(text).substr(whole);
  if (!fragment.starts_with(ours) && !ours.starts_with(fragment))
    throw Error(ErrorKind::usage,
                fmt::format("{}: its end is no result of mgpu, name another file", path));
  std::vector<std::string> notes;
  if (whole == 0) return {};
  return read_reports(std::string_view(text).substr(0, whole), path, notes);
}

bool same_devices(const Machine& a, const Machine& b) {
  return a.host.name == b.host.name &&
         std::ranges::equal(a.devices, b.devices, [](const Device& x, const Device& y) {
           return x.uuid == y.uuid && x.name == y.name;
         });
}

// Documents of one file that hold one case each are one report.
std::vector<Report> merged(std::vector<Report> documents) {
  std::vector<Report> reports;
  for (Report& document : documents) {
    const bool joins = !reports.empty() && document.kind == ReportKind::trials &&
                       reports.back().kind == ReportKind::trials &&
                       same_devices(reports.back().machine, document.machine);
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
  for (const OutputSpec& spec : request.outputs) {
    outputs.emplace_back(spec, request.append, request.force);
  }
  std::vector<std::string> notes;
  std::vector<Report> documents;
  for (const std::string& path : request.files)
    for (Report& document : read_reports(read_file(path, console), path, notes))
      documents.push_back(std::move(document));
  const std::vector<Report> reports = merged(documents);
  const auto needs_one = [](Format format) {
    return format == Format::json || format == Format::csv || is_picture(format);
  };
  const bool one_only = needs_one(request.format) ||
                        std::ranges::any_of(request.outputs, [&](const OutputSpec& spec) {
                          return needs_one(spec.format);
                        });
  if (reports.size() > 1 && one_only)
    throw Error(ErrorKind::usage,
                "show: one JSON or CSV document or picture holds one report: name one file, or use "
                "--format jsonl");
  if (!request.quiet)
    for (const std::string& note : notes) console.err(fmt::format("mgpu: note: {}\n", note));
  const auto all = [&](Format format, bool color, int width) {
    std::string text;
    // Lines stay the documents that they were.
    for (const Report& report : format == Format::jsonl ? documents : reports) {
      if (!text.empty() && (format == Format::text || format == Format::markdown)) text += "\n";
      text += rendered(format, report, {color, request.histogram, width});
    }
    return text;
  };
  print(console, all(request.format, wants_color(request, console), console.width));
  for (Output& output : outputs) output.write(all(output.format(), false, 0));
}

// The results of a --resume file that belong to cases of this plan, by position. What was cut short
// is measured again.
std::map<std::size_t, CaseResult> resumed(const Request& request, const Plan& plan,
                                          const Machine& machine, const Console& console) {
  std::map<std::size_t, CaseResult> found;
  if (request.resume.empty() || !std::filesystem::exists(request.resume) ||
      std::filesystem::is_empty(request.resume))
    return found;
  const auto identities = [](const Machine& of, const std::vector<int>& gpus) {
    std::string text = of.host.name;
    for (const int gpu : gpus)
      if (static_cast<std::size_t>(gpu) < of.devices.size())
        text += " " + of.devices[static_cast<std::size_t>(gpu)].uuid;
    return text;
  };
  std::multimap<std::string, std::size_t> wanted;
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    wanted.emplace(case_key(plan.cases[i].what, machine), i);
  bool foreign = false;
  for (Report& document : saved_lines(request.resume, console))
    for (CaseResult& result : document.cases) {
      if (identities(document.machine, result.what.gpus) != identities(machine, result.what.gpus)) {
        foreign = true;
        continue;
      }
      if (!document.complete || result.outcome == OutcomeKind::failed) continue;
      const auto [first, last] = wanted.equal_range(result.key);
      for (auto match = first; match != last; ++match)
        if (plan.cases[match->second].what.gpus == result.what.gpus &&
            found.try_emplace(match->second, result).second)
          break;
    }
  if (foreign && !request.force)
    throw Error(ErrorKind::usage,
                fmt::format("--resume {}: it holds results of other devices: name another file, or "
                            "--force to measure these cases again",
                            request.resume));
  return found;
}

// The gravest failure decides; skipped rows count only where there is nothing else.
void judge(Report& report) {
  for (const CaseResult& result : report.cases) {
    if (result.outcome != OutcomeKind::failed) continue;
    const int code = exit_code(result.error_kind.value_or(ErrorKind::runtime));
    if (graver(report.exit_code, code) == report.exit_code) continue;
    report.exit_code = code;
    report.error = ErrorInfo{*result.error_kind, result.reason, std::nullopt};
  }
  const bool all_skipped =
      !report.cases.empty() && std::ranges::all_of(report.cases, [](const CaseResult& result) {
        return result.outcome == OutcomeKind::skipped;
      });
  if (all_skipped)
    throw Error(report.cases.front().error_kind.value_or(ErrorKind::unavailable),
                report.cases.front().reason);
}

// Fills the run's report as far as it gets.
void run_cases(const Request& request, const Console& console, Run& run, Backend& backend,
               Watchdog& dog, const std::stop_token& stop) {
  Report& report = run.report();
  const Plan plan = make_plan(request, report.machine);
  if (request.command == Command::copy && plan.cases.front().skip)
    throw Error(plan.cases.front().skip->kind, plan.cases.front().skip->reason);
  if (request.dry_run) {
    report.kind = ReportKind::plan;
    for (const PlannedCase& planned : plan.cases) {
      for (const std::string& warning : planned.warnings) run.note(warning);
      report.plan.push_back(plan_entry(planned, request, report.machine));
    }
    return;
  }
  auto known = resumed(request, plan, report.machine, console);
  Plan missing;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const auto found = known.find(i);
    if (found != known.end()) {
      run.keep(i, std::move(found->second));
      continue;
    }
    missing.cases.push_back(plan.cases[i]);
    positions.push_back(i);
  }
  run.expect(std::move(positions));
  const Results results =
      measure(missing, report.machine, request.sampling, backend, run, dog, stop);
  report.complete = results.complete;
  if (results.error && request.command == Command::copy) throw *results.error;
  judge(report);
}

// Two outputs, or an input and an output, that are one file under two names.
void check_distinct(const Request& request) {
  std::vector<std::string> outputs;
  for (const OutputSpec& spec : request.outputs)
    if (spec.path != request.resume) outputs.push_back(spec.path);
  for (const std::string& path : {request.timeline, request.resume})
    if (!path.empty() && path != "-") outputs.push_back(path);
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return std::filesystem::equivalent(a, b, ignored) ||
           std::filesystem::weakly_canonical(a, ignored) ==
               std::filesystem::weakly_canonical(b, ignored);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].starts_with("/dev/")) continue;  // may well be given twice
    for (const std::string& input : request.files)
      if (input != "-" && same(input, outputs[i]))
        throw Error(
            ErrorKind::usage,
            fmt::format("--output '{}' is an input as well; write another file", outputs[i]));
    for (std::size_t j = 0; j < i; ++j)
      if (same(outputs[i], outputs[j]))
        throw Error(ErrorKind::usage, fmt::format("'{}' and '{}' are one file; write another one",
                                                  outputs[j], outputs[i]));
  }
}

// --append adds to results: what is there must be ours.
void check_appended(const Request& request, const Console& console) {
  for (const OutputSpec& spec : request.outputs) {
    std::error_code ignored;
    if (!request.append || spec.format != Format::jsonl ||
        !std::filesystem::is_regular_file(spec.path, ignored) ||
        std::filesystem::is_empty(spec.path, ignored))
      continue;
    saved_lines(spec.path, console);
  }
}

// Everything of a run but its end.
void execute(const Request& request, const Console& console, std::span<const BackendRow> backends,
             Run& run, Watchdog& dog, const std::stop_token& stop) {
  run.open();
  dog.on_expiry([&](const char* step, int signal) {
    run.stuck({},
              Error(ErrorKind::timeout,
                    fmt::format("timed out after {} s in {}", request.sampling.timeout, step)),
              signal);
  });
  const auto backend = make_backend(request, backends);
  Machine& machine = run.report().machine;
  machine = guarded(dog, "starting the driver", [&] { return backend->machine(); });
  if (request.command != Command::topo) run_cases(request, console, run, *backend, dog, stop);
}

int run_request(const Request& request, const Console& console,
                std::span<const BackendRow> backends) {
  check_distinct(request);
  if (request.command == Command::show) {
    show(request, console);
    return 0;
  }
  check_appended(request, console);
  Run run(request, console);
  Report& report = run.report();
  if (request.command == Command::topo) report.kind = ReportKind::topology;
  if (console.handle_signals) block_signals();
  std::stop_source stop;
  std::optional<Watchdog> dog;
  std::optional<Signals> signals;
  try {
    dog.emplace(request.sampling.timeout);
    if (console.handle_signals)
      signals.emplace([&](int signal) {
        stop.request_stop();
        dog->interrupt(signal);
      });
    run.on_signal([&] { return signals ? signals->received() : 0; });
    execute(request, console, backends, run, *dog, stop.get_token());
  } catch (const Error& error) {
    // What could not be started prints nothing on stdout; what could tells what it found.
    if (error.kind == ErrorKind::usage) throw;
    report.error = ErrorInfo{error.kind, error.what(), error.device};
    report.exit_code = graver(report.exit_code, exit_code(error.kind));
  } catch (const std::exception& error) {  // threads, descriptors or memory that the system refuses
    report.error = ErrorInfo{ErrorKind::runtime, error.what(), std::nullopt};
    report.exit_code = exit_code(ErrorKind::runtime);
  }
  if (report.machine.host.name.empty()) report.machine.host = host_facts();
  if (signals && signals->received()) {
    report.complete = false;
    report.exit_code = 128 + signals->received();
  }
  if (signals) signals->settle();
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
    complain(console, args.empty() ? std::string(error.what())
                                   : fmt::format("mgpu: error: {}\n", error.what()));
    return exit_code(error.kind);
  } catch (const std::exception& error) {
    complain(console, fmt::format("mgpu: error: {}\n", error.what()));
    return exit_code(ErrorKind::runtime);
  }
}

}  // namespace mgpu
