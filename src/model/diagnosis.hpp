// SPDX-License-Identifier: MIT
// Why a case is slow: what might be, as experiments to make, and what was, with its cost and its
// cure. Pure.
#pragma once

#include "model/machine.hpp"
#include "model/plan.hpp"
#include "model/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// A policy of the case that may cost: the same case without it, to be measured beside, and the
/// option that makes it so.
struct Suspect {
  CauseKind cause = CauseKind::array_prefetch;
  Case without;
  std::string option;
};

/// None for a case whose policies cost nothing: a healthy configuration is measured once. The
/// likely dearest first.
std::vector<Suspect> suspects(const Case& what, const Machine& machine);

/// What came of one: the median without the policy, with its interval.
struct Experiment {
  Suspect suspect;
  Summary without;
};

/// The causes, the dearest first. One is named only with evidence, only above 2% of the median, and
/// an experiment's only where the intervals of both medians are apart. Causes that follow from a
/// dearer one (imbalance or modes under a policy that was found to cost) are left out.
std::vector<Cause> diagnose(const CaseResult& result, std::span<const Experiment> experiments,
                            const Machine& machine);

/// Whether slices of two devices touch one 2 MiB block of a managed array.
bool shares_block(const Case& what);

}  // namespace mgpu
