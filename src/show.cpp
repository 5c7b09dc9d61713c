// SPDX-License-Identifier: MIT
#include "show.hpp"

#include "backend/host_facts.hpp"
#include "model/comparison.hpp"
#include "model/fields.hpp"
#include "model/rounds.hpp"
#include "output.hpp"
#include "pictures.hpp"
#include "report/histogram.hpp"
#include "run.hpp"
#include "saved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

bool holds_one_report(Format format) {
  return format == Format::json || format == Format::csv || format == Format::xml ||
         is_picture(format);
}

// Documents as files for programs have them.
bool is_raw(Format format) {
  return format == Format::json || format == Format::csv;
}

/// What files hold, as it was written and as people see it.
struct Saved {
  std::vector<Report> documents;
  std::vector<Report> reports;  ///< documents put together
  std::vector<Report> trials;   ///< the same with the rounds of each file pooled, named by file
};

// What files say of one case stands together.
void side_by_side(std::vector<CaseResult>& cases) {
  const auto identity = [](const CaseResult& result) {
    return std::pair(result.what.gpus, identity_fields(result.what));
  };
  std::map<decltype(identity(cases.front())), std::size_t> first;
  for (const CaseResult& result : cases) first.try_emplace(identity(result), first.size());
  std::ranges::stable_sort(cases, {},
                           [&](const CaseResult& result) { return first.at(identity(result)); });
}

Saved load(const Request& request, const Console& console, std::vector<std::string>& notes) {
  Saved saved;
  for (const std::string& path : request.files) {
    std::vector<Report> documents = read_reports(read_file(path, console), path, notes);
    saved.documents.insert(saved.documents.end(), documents.begin(), documents.end());
    for (Report& report : merged(std::move(documents))) {
      report.cases = with_rounds_pooled(report.cases);
      if (request.files.size() > 1)
        for (CaseResult& result : report.cases) result.file = path;
      saved.trials.push_back(std::move(report));
    }
  }
  saved.reports = merged(saved.documents);
  saved.trials = merged(std::move(saved.trials));
  if (request.files.size() > 1)
    for (Report& report : saved.trials) side_by_side(report.cases);
  return saved;
}

// Trials of one case can be compared by eye where axis, width and scale of their histograms are the
// same.
void share_axis(const std::vector<Report>& reports, RenderOptions& options) {
  std::vector<const CaseResult*> trials;
  for (const Report& report : reports)
    for (const CaseResult& result : report.cases)
      if (result.samples_ns.size() > 1) trials.push_back(&result);
  if (trials.size() < 2) return;
  const auto identity = identity_fields(trials.front()->what);
  Interval axis = histogram_range(trials.front()->samples_ns);
  int width = 0;
  for (const CaseResult* trial : trials) {
    if (identity_fields(trial->what) != identity) return;
    const auto [low, high] = histogram_range(trial->samples_ns);
    axis = {std::min(axis.low, low), std::max(axis.high, high)};
    width = std::max(width, histogram_width(trial->summary));
  }
  const bool any_log = std::ranges::any_of(trials, [&](const CaseResult* trial) {
    return make_histogram(trial->samples_ns, width, options.histogram, axis).logarithmic;
  });
  options.axis = axis;
  options.axis_width = width;
  options.histogram = any_log ? HistogramScale::log : HistogramScale::linear;
}

std::string rendered(const Saved& saved, Format format, const RenderOptions& options) {
  std::string text;
  // Lines stay the documents that they were.
  for (const Report& report : format == Format::jsonl ? saved.documents
                              : is_raw(format)        ? saved.reports
                                                      : saved.trials) {
    if (!text.empty() && (format == Format::text || format == Format::markdown)) text += "\n";
    text += rendered(format, report, options);
  }
  return text;
}

}  // namespace

void show(const Request& request, const Console& console) {
  std::vector<std::string> notes;
  const Saved saved = load(request, console, notes);
  const bool one_only = holds_one_report(request.format) ||
                        std::ranges::any_of(request.outputs, [](const OutputSpec& spec) {
                          return holds_one_report(spec.format);
                        });
  if (saved.reports.size() > 1 && one_only)
    throw Error(ErrorKind::usage,
                "show: one JSON or CSV document or picture holds one report: name one file, or use "
                "--format jsonl");
  const ReportKind kind = saved.reports.front().kind;
  const bool graph = kind == ReportKind::topology;
  for (const OutputSpec& spec : request.outputs)
    if ((is_picture(spec.format) && kind == ReportKind::fleet) ||
        (spec.format == Format::dot && !graph))
      throw Error(ErrorKind::usage,
                  fmt::format("--output '{}': {} has no picture of that kind; use "
                              "another format",
                              spec.path, name(kind)));
  for (const OutputSpec& spec : request.outputs)
    if (spec.format == Format::svg || spec.format == Format::png)
      require_painter(graph ? Painter::graphviz : Painter::gnuplot);
  std::vector<Output> outputs;
  for (const OutputSpec& spec : request.outputs)
    outputs.emplace_back(spec, request.append, request.force);
  if (!request.quiet)
    for (const std::string& note : notes) complain(console, fmt::format("mgpu: note: {}\n", note));
  RenderOptions options;
  options.histogram = request.histogram;
  share_axis(saved.trials, options);
  RenderOptions for_stdout = options;
  for_stdout.color = wants_color(request, console);
  for_stdout.width = console.width;
  print(console, rendered(saved, request.format, for_stdout));
  for (Output& output : outputs) output.write(rendered(saved, output.format(), options));
}

int compare_files(const Request& request, const Console& console) {
  Run run(request, console);
  std::vector<std::string> notes;
  const auto base = saved_trials(request.files[0], console, notes),
             current = saved_trials(request.files[1], console, notes);
  run.open();
  for (const std::string& note : notes) run.note(note);
  Report& report = run.report();
  report.kind = ReportKind::comparison;
  report.machine = base.front().machine;  // what the cases of the rows speak of
  report.comparison = compare(base, current, request.compare);
  const auto& rows = report.comparison->rows;
  const auto slower = std::ranges::count(rows, Verdict::slower, &ComparisonRow::verdict);
  if (slower > 0)
    report.error = ErrorInfo{ErrorKind::slower,
                             fmt::format("slower than {}: {} of {} case{}", request.files[0],
                                         slower, rows.size(), rows.size() == 1 ? "" : "s"),
                             std::nullopt};
  else if (rows.empty())
    report.error = ErrorInfo{ErrorKind::nothing_comparable,
                             fmt::format("nothing in {} is comparable with {}: see why above, or "
                                         "use --force to compare by position",
                                         request.files[1], request.files[0]),
                             std::nullopt};
  report.exit_code = exit_code(*report.comparison);
  return run.publish();
}

namespace {

/// The trials of a node's file.
std::vector<Report> trials_to_merge(const std::string& path, const Console& console,
                                    std::vector<std::string>& notes) {
  std::vector<Report> documents = read_reports(read_file(path, console), path, notes);
  for (const Report& document : documents) {
    if (document.kind == ReportKind::trials) continue;
    throw Error(ErrorKind::usage,
                document.kind == ReportKind::fleet
                    ? fmt::format("{0}: is a fleet already: mgpu show {0} prints it", path)
                    : fmt::format("{}: holds a {}, no trials: name what mgpu copy or sweep wrote",
                                  path, name(document.kind)));
  }
  return documents;
}

}  // namespace

int merge_files(const Request& request, const Console& console) {
  Run run(request, console);
  std::vector<std::string> notes;
  Report& report = run.report();
  report.kind = ReportKind::fleet;
  FleetBuilder fleet;
  std::string first;  // file of the backend that the report has
  for (const std::string& path : request.files)
    for (const Report& trials : trials_to_merge(path, console, notes)) {
      const BackendKind backend = trials.machine.backend;
      if (first.empty()) {
        first = path;
        report.machine.backend = backend;
      }
      if (backend != report.machine.backend)
        throw Error(ErrorKind::usage,
                    fmt::format("{} holds trials of the backend {}, {} of {}: merge those of one "
                                "backend",
                                first, name(report.machine.backend), path, name(backend)));
      fleet.add(trials);
    }
  run.open();
  std::optional<Output> exclude;
  if (!request.exclude_file.empty())
    exclude.emplace(OutputSpec{Format::text, request.exclude_file}, false, true);
  for (const std::string& note : notes) run.note(note);
  report.machine.host = host_facts();
  report.fleet = fleet.finish(request.outlier);
  if (exclude) exclude->write(report.fleet->exclude.empty() ? "" : report.fleet->exclude + "\n");
  return run.publish();
}

}  // namespace mgpu
