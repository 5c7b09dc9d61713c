// SPDX-License-Identifier: MIT
// What comparing saved results finds, and what a run was wanted to reach. Compares nothing.
#pragma once

#include "model/plan.hpp"
#include "model/ratio.hpp"

#include <optional>
#include <string>
#include <vector>

namespace mgpu {

enum class Verdict { faster, slower, same, unclear };
template <>
inline constexpr auto vocabulary<Verdict> = std::to_array<Word<Verdict>>({
    {Verdict::faster, "faster", "less time, beyond the tolerance and the noise"},
    {Verdict::slower, "slower", "more time, beyond the tolerance and the noise"},
    {Verdict::same, "same", "no more than the tolerance apart, noise included"},
    {Verdict::unclear, "unclear", "the samples do not tell"},
});

/// The two sets of results: what was, and what is now.
enum class Side { base, current };
template <>
inline constexpr auto vocabulary<Side> = std::to_array<Word<Side>>({
    {Side::base, "base", "what is compared with"},
    {Side::current, "new", "what is compared"},
});

/// One side of a row.
struct Compared {
  double ns = 0;                    ///< the metric
  int units = 0;                    ///< rounds or batches, see `mode`
  std::optional<double> run_delay;  ///< host backend: the share of the samples' time that threads
                                    ///< waited for a CPU, of the median round
  std::optional<Modes> modes;       ///< where all its samples together have two
};

/// What is found of one case.
struct Judgement {
  Compared base, current;
  Metric metric = Metric::median;
  double ratio = 1;                             ///< new time over base time
  std::optional<double> ratio_low, ratio_high;  ///< its 99% interval; none from too few samples
  double tolerance = 5;                         ///< per cent
  Verdict verdict = Verdict::unclear;
  std::string reason;  ///< the evidence, or what is missing; lower case, no stop
  Units mode = Units::batches;
  std::optional<bool> alternated;  ///< whether the rounds were taken in turns; of rounds alone
};

struct ComparisonRow : Judgement {
  std::string key;  ///< of the base's case
  Case what;
};

/// A case of one side that has no measured partner on the other.
struct UnmatchedCase {
  Side side = Side::base;
  std::string key;
  Case what;
  std::string reason;
};

/// What is not the same around two sets of results; it prevents no verdict.
struct Difference {
  std::string what, base, current;
};

struct Comparison {
  std::vector<ComparisonRow> rows;
  std::vector<UnmatchedCase> unmatched;
  std::vector<Difference> differences;
  bool forced = false;  ///< compared by position
};

/// What --baseline found of a case.
struct AgainstBaseline : Judgement {};

/// What --expect wants of a case's median rate, in bytes per second.
struct Expected {
  Basis basis = Basis::moved;  ///< what both rates count
  double wanted = 0;
  std::optional<double> got;  ///< where a sample was taken
  bool met = false;           ///< never of a case that failed
};

}  // namespace mgpu
