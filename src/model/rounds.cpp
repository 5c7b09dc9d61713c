// SPDX-License-Identifier: MIT
#include "model/rounds.hpp"

#include "model/fields.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace mgpu {
namespace {

Rate rate_of(Bytes bytes, const Summary& summary) {
  const auto per_second = [&](double ns) { return static_cast<double>(bytes) / ns * 1e9; };
  return {per_second(summary.median), per_second(summary.min), per_second(summary.max)};
}

bool is_poolable(const CaseResult& result) {
  return result.outcome == OutcomeKind::measured && result.samples > 0 &&
         std::cmp_equal(result.samples, result.samples_ns.size());
}

// A round without a check leaves the whole unchecked, one that failed spoils it.
void add_verification(CaseResult& whole, const CaseResult& round) {
  if (round.verified == false || !whole.verified) whole.verified = round.verified;
  if (whole.verified == true && !round.verified) whole.verified.reset();
  whole.verification.passes_checked += round.verification.passes_checked;
  whole.verification.passes += round.verification.passes;
  if (!whole.verification.mismatch) whole.verification.mismatch = round.verification.mismatch;
}

CaseResult pooled(const std::vector<const CaseResult*>& rounds) {
  std::vector<const CaseResult*> by_median = rounds;
  const auto median = [](const CaseResult* round) { return round->summary.median; };
  const auto middle = by_median.begin() + static_cast<std::ptrdiff_t>((rounds.size() - 1) / 2);
  std::ranges::nth_element(by_median, middle, {}, median);
  CaseResult whole = **middle;
  whole.samples_ns.clear();
  whole.marks.clear();
  whole.verified = rounds.front()->verified;
  whole.verification = {0, 0, whole.verification.bytes, std::nullopt};
  for (const CaseResult* round : rounds) {
    whole.samples_ns.insert(whole.samples_ns.end(), round->samples_ns.begin(),
                            round->samples_ns.end());
    whole.round_medians.push_back(round->summary.median);
    for (const Mark mark : round->marks)
      if (std::ranges::find(whole.marks, mark) == whole.marks.end()) whole.marks.push_back(mark);
    add_verification(whole, *round);
  }
  whole.samples = static_cast<std::int64_t>(whole.samples_ns.size());
  whole.summary = summarize(whole.samples_ns);
  whole.rates = {rate_of(whole.bytes_copied, whole.summary),
                 rate_of(whole.bytes_moved, whole.summary)};
  whole.modes = two_modes(whole.samples_ns);
  return whole;
}

}  // namespace

std::vector<CaseResult> with_rounds_pooled(const std::vector<CaseResult>& cases) {
  std::map<std::pair<std::vector<std::pair<std::string, std::string>>, std::vector<int>>,
           std::vector<const CaseResult*>>
      rounds;
  const auto identity = [](const CaseResult& result) {
    return std::pair(identity_fields(result.what), result.what.gpus);
  };
  for (const CaseResult& result : cases)
    if (is_poolable(result)) rounds[identity(result)].push_back(&result);
  std::vector<CaseResult> shown;
  for (const CaseResult& result : cases) {
    if (!is_poolable(result)) {
      shown.push_back(result);
      continue;
    }
    const auto& all = rounds.at(identity(result));
    if (all.front() != &result) continue;
    shown.push_back(all.size() == 1 ? result : pooled(all));
  }
  return shown;
}

}  // namespace mgpu
