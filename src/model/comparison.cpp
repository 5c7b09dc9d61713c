// SPDX-License-Identifier: MIT
#include "model/comparison.hpp"

#include "model/differences.hpp"
#include "model/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace mgpu {
namespace {

/// One result with the report that it is in.
struct Round {
  const CaseResult* result;
  const Report* report;
};

/// All results of one case on a side.
struct Group {
  std::string key;
  Round first;
  std::vector<Round> rounds;  ///< those with samples
};

std::string device_names(const Round& round) {
  std::vector<std::string_view> names;
  for (const int gpu : round.result->what.gpus)
    names.push_back(round.report->machine.devices[static_cast<std::size_t>(gpu)].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check(Side side, const CaseResult& result, const Machine& machine) {
  const auto refuse_if = [&](bool wrong, std::string_view what) {
    if (wrong)
      throw Error(ErrorKind::usage, fmt::format("{} results, case {}: {}", name(side),
                                                result.key.empty() ? "?" : result.key, what));
  };
  refuse_if(
      std::ranges::any_of(
          result.what.gpus,
          [&](int gpu) { return gpu < 0 || std::cmp_greater_equal(gpu, machine.devices.size()); }),
      "it names no device of its report");
  refuse_if(std::ranges::any_of(result.samples_ns,
                                [](double ns) { return !(ns > 0) || !std::isfinite(ns); }),
            "a sample is not above 0");
}

std::vector<Group> groups_of(Side side, std::span<const Report> reports) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> place;
  for (const Report& report : reports)
    for (const CaseResult& result : report.cases) {
      check(side, result, report.machine);
      // Not the key in the file: it may be of a version that knew fewer fields.
      const std::string key = case_key(result.what, report.machine);
      const auto [found, added] = place.emplace(key, groups.size());
      if (added) groups.push_back({key, {&result, &report}, {}});
      if (result.outcome == OutcomeKind::measured && !result.samples_ns.empty())
        groups[found->second].rounds.push_back({&result, &report});
    }
  return groups;
}

bool in_turns(const Group& base, const Group& current) {
  std::vector<std::pair<std::string, Side>> starts;  // UTC in one format sorts as text
  for (const Round& round : base.rounds) starts.emplace_back(round.report->started, Side::base);
  for (const Round& round : current.rounds)
    starts.emplace_back(round.report->started, Side::current);
  // Where the times are equal, or not known, a side's rounds stay together.
  std::ranges::sort(starts);
  std::size_t changes = 0;
  for (std::size_t i = 1; i < starts.size(); ++i)
    if (starts[i].second != starts[i - 1].second) ++changes;
  return changes >= std::min(base.rounds.size(), current.rounds.size());
}

template <class F>
std::optional<double> median_of(const Group& group, const F& value) {
  std::vector<double> values;
  for (const Round& round : group.rounds)
    if (const std::optional<double> one = value(*round.result)) values.push_back(*one);
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

std::optional<double> run_delay_of(const CaseResult& result) {
  const double lanes = result.what.split * (result.what.bidirectional ? 2 : 1);
  const double wall = result.summary.mean * static_cast<double>(result.samples) * result.what.batch;
  if (!result.run_queue_delay_ns || !(wall > 0)) return std::nullopt;
  return *result.run_queue_delay_ns / (lanes * wall);
}

Rounds samples_of(const Group& group) {
  Rounds rounds;
  for (const Round& round : group.rounds) rounds.emplace_back(round.result->samples_ns);
  return rounds;
}

Compared compared(const Group& group, double ns, std::size_t units) {
  std::vector<double> all;
  for (const Round& round : group.rounds)
    all.insert(all.end(), round.result->samples_ns.begin(), round.result->samples_ns.end());
  return {ns, static_cast<int>(units), median_of(group, run_delay_of), two_modes(all)};
}

// Medians of one run a side tell little there: on CPUs they move more from run to run than within
// any, and near the cost of an empty copy by several per cent.
std::string doubt_of_one_run(const Group& base, const Group& current) {
  const auto on_host = [](const Group& side) {
    return side.first.report->machine.backend == BackendKind::host;
  };
  // Whatever disturbs an empty copy adds to it, so of both sides the least is its cost.
  std::optional<double> harness;
  for (const Group* side : {&base, &current})
    for (const Round& round : side->rounds)
      if (const auto one = round.result->harness_ns)
        harness = std::min(harness.value_or(*one), *one);
  const auto near_harness = [&](const Group& side) {
    constexpr double near = 3;
    const auto time =
        median_of(side, [](const CaseResult& r) { return std::optional(r.summary.median); });
    return harness && *time < near * *harness;
  };
  if (on_host(base) || on_host(current))
    return base.rounds.size() == 1 && current.rounds.size() == 1 ? "one run a side" : "few rounds";
  if (near_harness(base) || near_harness(current)) return "near the cost of an empty copy";
  return "";
}

std::string evidence(const ComparisonRow& row) {
  return fmt::format("{}+{} {}{}", row.base.units, row.current.units, name(row.mode),
                     !row.alternated   ? ""
                     : *row.alternated ? " in turns"
                                       : ", not in turns");
}

// The rule; its figures are in statistics, as false verdicts of pairs of equal runs.
void judge(ComparisonRow& row, const Ratio& ratio, const Group& base, const Group& current) {
  constexpr double busy = 0.03;
  const auto unclear = [&row](std::string reason) { row.reason = std::move(reason); };
  if (!ratio.interval)
    return unclear(fmt::format("few samples: {} and {}", row.base.units, row.current.units));
  const double waited = std::max(row.base.run_delay.value_or(0), row.current.run_delay.value_or(0));
  if (waited > busy)
    return unclear(fmt::format("busy: threads waited {:.0f}% for a CPU", 100 * waited));

  const double above = 1 + row.tolerance / 100, below = 1 / above;
  const auto [low, high] = *ratio.interval;
  if (low > above || high < below) {
    const std::string doubt =
        row.mode == Units::batches ? doubt_of_one_run(base, current) : std::string();
    if (!doubt.empty()) return unclear(doubt + ": repeat both in turns, 10 times");
    row.verdict = low > above ? Verdict::slower : Verdict::faster;
  } else if (below <= low && high <= above) {
    row.verdict = Verdict::same;
  } else if (row.tolerance == 0) {
    return unclear("at tolerance 0 nothing is the same");
  } else if (high / low < above) {
    return unclear("at the edge of the tolerance, " + evidence(row));
  } else {
    return unclear(fmt::format("wide: {} spread {:.2g}%{}", name(row.mode), 100 * ratio.spread,
                               row.alternated == false ? ", not in turns" : ""));
  }
  row.reason = evidence(row);
}

bool equal_samples(const Group& base, const Group& current) {
  const auto samples = [](const Round& round) -> const auto& { return round.result->samples_ns; };
  return std::ranges::equal(base.rounds, current.rounds, {}, samples, samples);
}

ComparisonRow compare_groups(const Group& base, const Group& current,
                             const CompareOptions& options) {
  ComparisonRow row;
  row.key = base.key;
  row.what = base.first.result->what;
  row.metric = options.metric;
  row.tolerance = options.tolerance;
  const bool turns = in_turns(base, current);
  const Ratio ratio = ratio_of(samples_of(base), samples_of(current), options.metric, turns);
  row.base = compared(base, ratio.base, ratio.units_base);
  row.current = compared(current, ratio.current, ratio.units_current);
  row.mode = ratio.units;
  if (row.mode == Units::rounds) row.alternated = turns;
  row.ratio = ratio.value;
  if (ratio.interval) {
    row.ratio_low = ratio.interval->low;
    row.ratio_high = ratio.interval->high;
  }
  if (equal_samples(base, current)) {
    row.ratio = 1;
    row.ratio_low = row.ratio_high = 1;
    row.verdict = Verdict::same;
    row.reason = "equal samples";
  } else {
    judge(row, ratio, base, current);
  }
  return row;
}

std::string why_unmatched(const Group& group, const Group* partner,
                          const std::vector<Group>& others, Side other) {
  const auto outcome = [](const CaseResult& r) {
    return r.outcome == OutcomeKind::measured ? "no samples are stored"
           : r.reason.empty()                 ? std::string(name(r.outcome))
                                              : fmt::format("{}: {}", name(r.outcome), r.reason);
  };
  if (group.rounds.empty()) return outcome(*group.first.result);
  if (partner) return fmt::format("{}: {}", name(other), outcome(*partner->first.result));
  const auto fields = identity_fields(group.first.result->what);
  for (const Group& candidate : others)
    if (identity_fields(candidate.first.result->what) == fields)
      return fmt::format("other devices: {}, and {} in {}", device_names(group.first),
                         device_names(candidate.first), name(other));
  return fmt::format("not in {}", name(other));
}

UnmatchedCase unmatched(Side side, const Group& group, const Group* partner,
                        const std::vector<Group>& others) {
  const Side other = side == Side::base ? Side::current : Side::base;
  return {side, group.key, group.first.result->what, why_unmatched(group, partner, others, other)};
}

void compare_by_identity(Comparison& result, const std::vector<Group>& base,
                         const std::vector<Group>& current, const CompareOptions& options) {
  const auto partner_of = [](const Group& group, const std::vector<Group>& others) {
    const auto found = std::ranges::find(others, group.key, &Group::key);
    return found == others.end() ? nullptr : &*found;
  };
  for (const Group& group : base) {
    const Group* partner = partner_of(group, current);
    if (partner && !group.rounds.empty() && !partner->rounds.empty())
      result.rows.push_back(compare_groups(group, *partner, options));
    else if (!group.rounds.empty() || !partner || partner->rounds.empty())
      result.unmatched.push_back(unmatched(Side::base, group, partner, current));
  }
  for (const Group& group : current) {
    const Group* partner = partner_of(group, base);
    if (!partner || (partner->rounds.empty() && !group.rounds.empty()))
      result.unmatched.push_back(unmatched(Side::current, group, partner, base));
  }
}

void compare_by_position(Comparison& result, std::vector<Group> base, std::vector<Group> current,
                         const CompareOptions& options) {
  const auto without_samples = [](const Group& group) { return group.rounds.empty(); };
  std::erase_if(base, without_samples);
  std::erase_if(current, without_samples);
  const std::size_t common = std::min(base.size(), current.size());
  for (std::size_t i = 0; i < common; ++i) {
    result.rows.push_back(compare_groups(base[i], current[i], options));
    const std::string row = fmt::format("row {}: ", i + 1);
    const auto was = identity_fields(base[i].first.result->what),
               is = identity_fields(current[i].first.result->what);
    for (std::size_t f = 0; f < was.size(); ++f)
      add_difference(result.differences, row + was[f].first, was[f].second, is[f].second);
    add_difference(result.differences, row + "devices", device_names(base[i].first),
                   device_names(current[i].first));
  }
  for (const auto& [side, groups] : {std::pair{Side::base, &base}, {Side::current, &current}})
    for (std::size_t i = common; i < groups->size(); ++i)
      result.unmatched.push_back({side, (*groups)[i].key, (*groups)[i].first.result->what,
                                  "the other side has fewer cases"});
}

}  // namespace

Comparison compare(std::span<const Report> base, std::span<const Report> current,
                   const CompareOptions& options) {
  Comparison result;
  result.forced = options.force;
  add_differences(result.differences, base, current);
  auto was = groups_of(Side::base, base), is = groups_of(Side::current, current);
  if (options.force)
    compare_by_position(result, std::move(was), std::move(is), options);
  else
    compare_by_identity(result, was, is, options);
  return result;
}

int exit_code(const Comparison& comparison) {
  if (std::ranges::find(comparison.rows, Verdict::slower, &ComparisonRow::verdict) !=
      comparison.rows.end())
    return exit_code(ErrorKind::slower);
  return comparison.rows.empty() ? exit_code(ErrorKind::nothing_comparable) : 0;
}

}  // namespace mgpu
