// SPDX-License-Identifier: MIT
#include "app.hpp"

#include "backend/host_facts.hpp"
#include "cli.hpp"
#include "file_names.hpp"
#include "gate.hpp"
#include "measure.hpp"
#include "memory_guard.hpp"
#include "model/matrix.hpp"
#include "model/schedule.hpp"
#include "output.hpp"
#include "ranks.hpp"
#include "report/report.hpp"
#include "run.hpp"
#include "saved.hpp"
#include "show.hpp"
#include "signals.hpp"
#include "topology.hpp"

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
  std::map<Site, Bytes> pools;
  for (const MemoryNeed& need : memory_needed(planned.what)) {
    Bytes& sum = pools[pool_of(need.site, machine)];
    sum = checked_add(sum, need.bytes).value_or(~Bytes{0});
  }
  for (const auto& [pool, bytes] : pools) {
    PlanEntry::Memory memory{std::nullopt, std::nullopt, bytes};
    if (!pool.on_host())
      memory.device = pool.index;
    else if (pool != whole_host)
      memory.node = pool.index;
    entry.memory.push_back(memory);
  }
  entry.estimate_ns = estimate_ns(planned.what, machine, request.sampling);
  return entry;
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

// The one of a document of `mgpu topo --json`.
Machine recorded_machine(const std::string& path, const Console& console) {
  std::vector<std::string> notes;
  std::vector<Report> documents = read_reports(read_file(path, console), path, notes);
  if (documents.size() != 1 || documents.front().kind != ReportKind::topology)
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: --machine needs one topology; record it with mgpu topo --json", path));
  return std::move(documents.front().machine);
}

void plan_matrix(const Request& request, Report& report) {
  report.kind = ReportKind::plan;
  const std::vector<Cell> cells = matrix_cells(request, report.machine);
  report.plan = matrix_entries(cells, request, report.machine);
  report.estimate_ns = matrix_estimate_ns(cells, report.plan);
}

// Fills the run's report as far as it gets. Without a backend it is for a recorded machine.
void run_topo(const Request& request, Run& run, Backend* backend, Watchdog& dog,
              const std::stop_token& stop) {
  Report& report = run.report();
  if (request.dry_run) return plan_matrix(request, report);
  describe_states(report.machine, *backend, dog);
  if (request.measure) measure_topology(request, report, *backend, run, dog, stop);
}

// Likewise.
void run_cases(const Request& request, const Gate& gate, const Console& console, Run& run,
               Backend* backend, Watchdog& dog, const std::stop_token& stop) {
  Report& report = run.report();
  const Plan plan = make_plan(request, report.machine);
  if (request.command == Command::copy && plan.cases.front().skip)
    throw Error(plan.cases.front().skip->kind, plan.cases.front().skip->reason);
  std::vector<std::string> notes;
  gate.check(plan, report.machine, notes);
  for (const std::string& note : notes) run.note(note);
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
      measure(missing, report.machine, request.sampling, *backend, run, dog, stop);
  report.complete = results.complete;
  if (results.error && request.command == Command::copy) throw *results.error;
  judge(report);
  if (auto wrong = report.complete ? gate.verdict(report) : std::nullopt) {
    report.exit_code = graver(report.exit_code, exit_code(wrong->kind));
    if (!report.error) report.error = std::move(wrong);
  }
}

// Two outputs, or an input and an output, that are one file under two names.
void check_distinct(const Request& request) {
  std::vector<std::string> outputs;
  for (const OutputSpec& spec : request.outputs)
    if (spec.path != request.resume) outputs.push_back(spec.path);
  for (const std::string& path : {request.timeline, request.resume, request.exclude_file})
    if (!path.empty() && path != "-") outputs.push_back(path);
  std::vector<std::string> inputs = request.files;
  for (const std::string& input : {request.baseline, request.machine_file})
    if (!input.empty()) inputs.push_back(input);
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return std::filesystem::equivalent(a, b, ignored) ||
           std::filesystem::weakly_canonical(a, ignored) ==
               std::filesystem::weakly_canonical(b, ignored);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].starts_with("/dev/")) continue;  // may well be given twice
    for (const std::string& input : inputs)
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

// Everything of a run but its end; `request` gets the part of the devices that is this rank's.
void execute(Request& request, const Console& console, std::span<const BackendRow> backends,
             const Gate& gate, Ranks* ranks, Run& run, Watchdog& dog, const std::stop_token& stop) {
  run.open();
  dog.on_expiry([&](const char* step, int signal) {
    run.stuck({},
              Error(ErrorKind::timeout,
                    fmt::format("timed out after {} s in {}", request.sampling.timeout, step)),
              signal);
  });
  Machine& machine = run.report().machine;
  std::unique_ptr<Backend> backend;
  const auto start = [&] {
    backend = make_backend(request, backends);
    machine = guarded(dog, "starting the driver", [&] { return backend->machine(); });
  };
  if (request.machine_file.empty())
    start();
  else
    machine = recorded_machine(request.machine_file, console);
  if (ranks) {
    const bool one_each = std::cmp_greater_equal(machine.devices.size(), ranks->local_size());
    if (backend && request.backend == BackendKind::host && !request.host_devices && !one_each) {
      request.host_devices = ranks->local_size();
      start();
    }
    machine.host.rank = ranks->rank();
    machine.host.ranks = ranks->size();
    request.share = ranks->share(machine, stop);
  }
  if (request.command == Command::topo)
    run_topo(request, run, backend.get(), dog, stop);
  else
    run_cases(request, gate, console, run, backend.get(), dog, stop);
}

int run_devices(Request request, const Console& console, std::span<const BackendRow> backends,
                Ranks* ranks, std::stop_source stop) {
  Run run(request, console);
  std::vector<std::string> notes;
  const Gate gate(request, console, notes);
  for (const std::string& note : notes) run.note(note);
  run.on_result([&](CaseResult& result) { gate.judge(result, run.report()); });
  Report& report = run.report();
  if (request.command == Command::topo) report.kind = ReportKind::topology;
  if (ranks) {
    ranks->observe(report, [stop]() mutable { stop.request_stop(); });
    run.on_ready([&](std::size_t position) { ranks->ready(position, stop.get_token()); });
    run.on_progress([&] { ranks->alive(); });
    run.on_case([&](const Report& one) { ranks->add(one); },
                [&](const Report& one) { ranks->add_stuck(one); });
  }
  std::optional<Watchdog> dog;
  std::optional<Signals> signals;
  try {
    dog.emplace(request.sampling.timeout);
    if (console.handle_signals)
      signals.emplace([&](int signal) {
        stop.request_stop();
        dog->interrupt(signal);
        if (ranks) ranks->interrupt(signal);
      });
    run.on_signal([&] { return signals ? signals->received() : 0; });
    execute(request, console, backends, gate, ranks, run, *dog, stop.get_token());
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
  int code = run.publish();
  if (ranks) code = ranks->finish(stop.get_token());
  if (signals && signals->received()) {
    const int signal = signals->received();
    signals.reset();
    die_of(signal);
  }
  return code;
}

int run_with_others(const Request& request, const Console& console,
                    std::span<const BackendRow> backends, Team& team) {
  const std::string host = host_facts().name;
  std::stop_source stop;
  Ranks ranks(team, request, host, console, patience_with(request.sampling.timeout));
  try {
    Request named = request;
    expand_names(named, team.rank(), host);
    check_distinct(named);
    check_appended(team.rank() == 0 ? named : ranks.request(), console);
    ranks.open();
    return run_devices(ranks.request(), ranks.console(), backends, &ranks, stop);
  } catch (const Error& error) {
    return ranks.fail(error, stop.get_token());
  }
}

int run_request(Request request, Console console, std::span<const BackendRow> backends,
                const Join& join) {
  const Launched launcher = launched();
  if (launcher.several || launcher.pty) {
    // The terminal is the launcher's, whatever its ranks are given: it mixes what they write, and
    // may write it to a file.
    console.out_is_terminal = console.err_is_terminal = false;
    console.width = 0;
  }
  const bool measures = request.command == Command::copy || request.command == Command::sweep;
  if ((measures || request.command == Command::topo) && console.handle_signals)
    block_signals();  // before there are threads: those of MPI must not be the ones that take one
  if (measures && launcher.several) {
    const std::unique_ptr<Team> team = join ? join() : nullptr;
    if (team && team->size() > 1) return run_with_others(request, console, backends, *team);
    complain(console,
             fmt::format("mgpu: note: this is rank {} of {} and runs alone, for {}; give each a "
                         "file, -o run.%r.jsonl, and put them together with mgpu merge\n",
                         *launcher.rank, *launcher.ranks,
                         team ? "the MPI of this mgpu is not its launcher's"
                              : "this mgpu is built without MPI"));
  }
  if (launcher.rank) expand_names(request, *launcher.rank, host_facts().name);
  check_distinct(request);
  check_appended(request, console);
  switch (request.command) {
    case Command::show:
      show(request, console);
      return 0;
    case Command::compare:
      return compare_files(request, console);
    case Command::merge:
      return merge_files(request, console);
    default:
      return run_devices(std::move(request), console, backends, nullptr, {});
  }
}

}  // namespace

int run_app(const std::vector<std::string>& args, const Console& console,
            std::span<const BackendRow> backends, const Join& join) {
  try {
    auto parsed = parse_request(args);
    if (const auto* immediate = std::get_if<Immediate>(&parsed)) {
      print(console, immediate->text);
      return 0;
    }
    return run_request(std::move(std::get<Request>(parsed)), console, backends, join);
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
