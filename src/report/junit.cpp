// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/comparison.hpp"
#include "report/fleet_page.hpp"
#include "report/renderers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mgpu {
namespace {

// XML 1.0 has no place for control characters; `printable` has none left.
std::string attribute(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

}  // namespace

std::vector<JunitCase> junit_cases(const Comparison& comparison, BackendKind backend) {
  using enum JunitCase::Outcome;
  std::vector<JunitCase> cases;
  for (const ComparisonRow& row : comparison.rows) {
    const auto outcome = row.verdict == Verdict::slower    ? failed
                         : row.verdict == Verdict::unclear ? skipped
                                                           : passed;
    cases.push_back({case_phrase(row.what, backend), outcome,
                     fmt::format("{}: {} {} in base, {} in new, ratio {:.3f} (tolerance {:g}%), {}",
                                 name(row.verdict), name(row.metric), format_time(row.base.ns),
                                 format_time(row.current.ns), row.ratio, row.tolerance, row.reason),
                     row.current.ns / 1e9});
  }
  for (const UnmatchedCase& lone : comparison.unmatched)
    cases.push_back({case_phrase(lone.what, backend), skipped,
                     fmt::format("only {}: {}", name(lone.side), lone.reason), 0});
  return cases;
}

std::vector<JunitCase> junit_cases(const Report& report) {
  using enum JunitCase::Outcome;
  std::vector<JunitCase> cases;
  bool told = false;
  for (const CaseResult& result : report.cases) {
    JunitCase one{(result.file.empty() ? "" : result.file + ": ") +
                      case_phrase(result.what, report.machine.backend),
                  passed, "", result.summary.median / 1e9};
    const auto end = [&](JunitCase::Outcome outcome, std::string message) {
      one.outcome = outcome;
      one.message = std::move(message);
    };
    const bool slower = result.baseline && result.baseline->verdict == Verdict::slower;
    if (result.outcome == OutcomeKind::failed)
      end(failed, result.reason);
    else if (result.expect && !result.expect->met)
      end(failed, expected_phrase(*result.expect));
    else if (slower)
      end(failed, judgement_phrase(*result.baseline));
    else if (result.outcome == OutcomeKind::skipped)
      end(skipped, result.reason);
    else if (result.baseline && result.baseline->verdict == Verdict::unclear)
      end(skipped, judgement_phrase(*result.baseline));
    told = told || one.outcome == failed;
    cases.push_back(std::move(one));
  }
  // What ended the run must fail a test, where no case does.
  if (report.error && !told)
    cases.push_back({std::string(name(report.error->kind)), failed, report.error->message, 0});
  return cases;
}

std::vector<JunitCase> junit_cases(const Fleet& fleet, BackendKind backend) {
  using enum JunitCase::Outcome;
  std::vector<JunitCase> cases;
  for (const FleetGpu& gpu : fleet.gpus) {
    const FleetCase& one = case_of(fleet, gpu);
    const std::string rank = gpu.rank ? fmt::format(" rank {}", *gpu.rank) : "",
                      uuid = gpu.uuid.empty() ? "" : fmt::format(" ({})", gpu.uuid);
    cases.push_back({fmt::format("{}{} {} {}{}: {}", gpu.host, rank, device_noun(backend),
                                 gpu.ordinal, uuid, case_phrase(one.what, backend)),
                     gpu.outlier == Outlier::slow ? failed
                     : one.threshold              ? passed
                                                  : skipped,
                     gpu.outlier ? fmt::format("{}: median {}, {} from the fleet's, threshold {}",
                                               name(*gpu.outlier), format_time(gpu.median_ns),
                                               deviation(gpu.ratio), threshold_phrase(one))
                                 : "too few to judge",
                     gpu.median_ns / 1e9});
  }
  for (const FleetNode& node : fleet.nodes)
    for (const std::string& failure : node.failures)
      cases.push_back({node.host, failed, failure, 0});
  for (const MissingRank& rank : fleet.missing)
    cases.push_back({missing_name(rank), failed, "did not report to the end", 0});
  return cases;
}

std::string render_xml(const Report& report, const RenderOptions&) {
  switch (report.kind) {
    case ReportKind::comparison:
      return render_junit("mgpu compare", junit_cases(report.comparison.value_or(Comparison{}),
                                                      report.machine.backend));
    case ReportKind::fleet:
      return render_junit("mgpu merge",
                          junit_cases(report.fleet.value_or(Fleet{}), report.machine.backend));
    case ReportKind::trials:
      return render_junit(has_several_cases(report.cases) ? "mgpu sweep" : "mgpu copy",
                          junit_cases(report));
    case ReportKind::topology:
    case ReportKind::plan:
      break;
  }
  throw Error(ErrorKind::usage, fmt::format("a {} holds no tests that JUnit's XML could tell: use "
                                            "another format",
                                            name(report.kind)));
}

std::string render_junit(std::string_view suite, std::span<const JunitCase> cases) {
  const auto count = [&](JunitCase::Outcome outcome) {
    return std::ranges::count(cases, outcome, &JunitCase::outcome);
  };
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
      attribute(suite), cases.size(), count(JunitCase::Outcome::failed),
      count(JunitCase::Outcome::skipped));
  for (const JunitCase& one : cases) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"",
                       attribute(suite), attribute(one.name), one.seconds);
    if (one.outcome == JunitCase::Outcome::passed) {
      out += "/>\n";
      continue;
    }
    out += fmt::format(">\n      <{} message=\"{}\"/>\n    </testcase>\n",
                       one.outcome == JunitCase::Outcome::failed ? "failure" : "skipped",
                       attribute(one.message));
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace mgpu
