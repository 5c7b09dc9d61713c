// SPDX-License-Identifier: MIT
#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>

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
