// SPDX-License-Identifier: MIT
// Saved results against others, case by case: which are slower, and which cannot be compared.
// Reads no file, renders nothing.
#pragma once

#include "model/differences.hpp"
#include "model/ratio.hpp"
#include "model/result.hpp"

#include <optional>
#include <span>
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

struct CompareOptions {
  Metric metric = Metric::median;
  double tolerance = 5;  ///< per cent; slower is beyond 1 + tolerance, faster beyond its inverse
  bool force = false;    ///< by position, whatever the cases are
};

/// One side of a row.
struct Compared {
  double ns = 0;                    ///< the metric
  int units = 0;                    ///< rounds or batches, see `mode`
  std::optional<double> run_delay;  ///< host backend: the share of the samples' time that threads
                                    ///< waited for a CPU, of the median round
  std::optional<Modes> modes;       ///< where all its samples together have two
};

struct ComparisonRow {
  std::string key;  ///< of the base's case
  Case what;
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

/// A case of one side that has no measured partner on the other.
struct UnmatchedCase {
  Side side = Side::base;
  std::string key;
  Case what;
  std::string reason;
};

struct Comparison {
  std::vector<ComparisonRow> rows;
  std::vector<UnmatchedCase> unmatched;
  std::vector<Difference> differences;
  bool forced = false;  ///< compared by position
};

/// Cases are the same where everything that shapes them and the models of their devices are;
/// results of one case on a side are its rounds. Rows come in the order of the base. Skipped and
/// failed results have no samples and are unmatched. Throws Error{usage} where a sample is not
/// above 0, or a case names no device of its report.
Comparison compare(std::span<const Report> base, std::span<const Report> current,
                   const CompareOptions& options = {});

/// 8 where a row is slower, else 9 where there is no row, else 0.
int exit_code(const Comparison& comparison);

}  // namespace mgpu
