// SPDX-License-Identifier: MIT
#include "gate.hpp"

#include "model/comparison.hpp"
#include "model/paths.hpp"
#include "report/phrases.hpp"
#include "saved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mgpu {
namespace {

bool is_for(const Expectation& wanted, const Case& what) {
  if (!wanted.size) return true;
  const Bytes devices = wanted.size->per_gpu ? what.gpus.size() : 1;
  return checked_multiply(wanted.size->bytes, devices) == what.size;
}

bool is_met(const Expected& expected) {
  return expected.got && *expected.got >= expected.wanted;
}

/// The result as the report of a run of its own.
Report alone(const CaseResult& result, const Report& report) {
  Report one;
  one.tool_version = report.tool_version;
  one.started = report.started;
  one.machine = report.machine;
  one.cases = {result};
  return one;
}

}  // namespace

std::optional<ErrorInfo> slower_than_wanted(const CaseResult& result, BackendKind backend) {
  const std::string what = case_phrase(result.what, backend);
  if (result.expect && !result.expect->met)
    return ErrorInfo{
        ErrorKind::slower,
        fmt::format("slower than wanted: {}: {}", what, expected_phrase(*result.expect)),
        std::nullopt};
  if (result.baseline && result.baseline->verdict == Verdict::slower)
    return ErrorInfo{
        ErrorKind::slower,
        fmt::format("slower than the baseline: {}: {}", what, judgement_phrase(*result.baseline)),
        std::nullopt};
  return std::nullopt;
}

Gate::Gate(const Request& request, const Console& console, std::vector<std::string>& notes)
    : request_(request) {
  if (request.baseline.empty()) return;
  for (const Report& report : saved_trials(request.baseline, console, notes))
    for (const CaseResult& result : report.cases)
      baseline_[case_key(result.what, report.machine)].push_back(alone(result, report));
}

void Gate::check(const Plan& plan, const Machine& machine, std::vector<std::string>& notes) const {
  for (const Expectation& wanted : request_.expect) {
    bool used = false;
    for (const PlannedCase& planned : plan.cases) {
      // What was skipped early has no size yet.
      used = used || (planned.skip && planned.what.size == 0);
      if (!is_for(wanted, planned.what)) continue;
      used = true;
      if (planned.skip || wanted.basis || basis_of(planned.what, machine) == Basis::moved) continue;
      throw bad_value("--expect", wanted.text,
                      fmt::format("does not say what it counts, and a link is crossed ({}): write "
                                  "copied: for payload, or moved: for read + written",
                                  case_phrase(planned.what, machine.backend)));
    }
    if (!used)
      throw bad_value("--expect", wanted.text, "is for a size that no case has: leave it out");
  }
  if (request_.baseline.empty()) return;
  const auto missing = std::ranges::count_if(plan.cases, [&](const PlannedCase& planned) {
    return !planned.skip && !baseline_.contains(case_key(planned.what, machine));
  });
  if (missing > 0)
    notes.push_back(fmt::format("--baseline {}: it lacks {} of {} cases of this run",
                                request_.baseline, missing, plan.cases.size()));
}

void Gate::judge(CaseResult& result, const Report& report) const {
  result.expect.reset();
  result.baseline.reset();
  if (result.outcome == OutcomeKind::skipped) return;
  for (const Expectation& wanted : request_.expect) {
    if (!is_for(wanted, result.what)) continue;
    Expected one;
    one.basis = wanted.basis.value_or(Basis::moved);
    one.wanted = wanted.rate;
    const Rates& rates = result.rates;
    if (result.samples > 0)
      one.got = one.basis == Basis::moved ? rates.moved.median : rates.copied.median;
    one.met = result.outcome == OutcomeKind::measured && is_met(one);
    // Of several the one that is hardest to reach: with it all others are met.
    const auto share = [](const Expected& e) { return e.got.value_or(0) / e.wanted; };
    if (!result.expect || share(one) < share(*result.expect)) result.expect = one;
  }
  const auto base = baseline_.find(case_key(result.what, report.machine));
  if (base == baseline_.end() || result.outcome != OutcomeKind::measured) return;
  const Report now = alone(result, report);
  const Comparison found = compare(base->second, {&now, 1}, request_.compare);
  if (!found.rows.empty()) result.baseline = AgainstBaseline{found.rows.front()};
}

std::optional<ErrorInfo> Gate::verdict(const Report& report) const {
  std::vector<ErrorInfo> wrong;
  for (const CaseResult& result : report.cases)
    if (auto slow = slower_than_wanted(result, report.machine.backend))
      wrong.push_back(std::move(*slow));
  for (const Expectation& wanted : request_.expect)
    if (std::ranges::none_of(report.cases, [&](const CaseResult& result) {
          return result.expect && is_for(wanted, result.what);
        }))
      wrong.push_back({ErrorKind::slower,
                       fmt::format("--expect {}: no case that it is for was measured", wanted.text),
                       std::nullopt});
  if (!wrong.empty()) {
    if (wrong.size() > 1) wrong.front().message += fmt::format("; and {} more", wrong.size() - 1);
    return wrong.front();
  }
  if (request_.baseline.empty() ||
      std::ranges::any_of(report.cases, [](const CaseResult& r) { return r.baseline.has_value(); }))
    return std::nullopt;
  std::vector<Report> all;
  for (const auto& [key, reports] : baseline_)
    all.insert(all.end(), reports.begin(), reports.end());
  const Comparison none = compare(all, {&report, 1}, request_.compare);
  const auto why = std::ranges::find(none.unmatched, Side::current, &UnmatchedCase::side);
  return ErrorInfo{ErrorKind::nothing_comparable,
                   fmt::format("--baseline {}: nothing is comparable{}", request_.baseline,
                               why == none.unmatched.end() ? "" : ": " + why->reason),
                   std::nullopt};
}

}  // namespace mgpu
