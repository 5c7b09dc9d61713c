// SPDX-License-Identifier: MIT
// How much longer one set of runs takes than another, and how well that is known. Knows samples
// alone: no report, no case, no verdict.
#pragma once

#include "model/stats.hpp"
#include "model/words.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mgpu {

/// What of a series of samples is compared.
enum class Metric { median, min, mean };
template <>
inline constexpr auto vocabulary<Metric> = std::to_array<Word<Metric>>({
    {Metric::median, "median", "the middle sample"},
    {Metric::min, "min", "the fastest sample"},
    {Metric::mean, "mean", "the mean of all samples"},
});

/// What counts as one independent observation.
enum class Units { rounds, batches };
template <>
inline constexpr auto vocabulary<Units> = std::to_array<Word<Units>>({
    {Units::rounds, "rounds", "a whole run of the case"},
    {Units::batches, "batches", "neighbouring samples of one run, about ten batches a side"},
});

/// The samples of each run of one side, in time order; no run is empty, all samples are above 0.
using Rounds = std::vector<std::span<const double>>;

/// Rounds are units from so many on, on both sides.
inline constexpr std::size_t enough_rounds = 5;

struct Ratio {
  double base = 0, current = 0;      ///< the metric of each side: of all samples, or the median of
                                     ///< its rounds' values
  double value = 1;                  ///< current over base
  std::optional<Interval> interval;  ///< 99% of `value`, which it holds; none from too few units
  Units units = Units::batches;
  std::size_t units_base = 0, units_current = 0;
  double spread = 0;  ///< sd of the logarithms of a side's units, of the more uneven side
};

/// Current over base with a rank interval: of all differences between the logarithms of a unit of
/// each side, what is left between the ranks that `dropped_ranks` allows to drop at either end
/// (Hodges and Lehmann, 1963). The extremes stay where units are rounds that were not taken in
/// turns: the machine may have changed between the sides. Each side has a round. No randomness.
Ratio ratio_of(const Rounds& base, const Rounds& current, Metric metric, bool in_turns);

/// The largest u at which P(U <= u) is at most 0.005 for Mann and Whitney's U of m and n units,
/// exact up to 25 and by the normal approximation beyond; nothing where even u = 0 is likelier.
std::optional<std::size_t> dropped_ranks(std::size_t m, std::size_t n);

}  // namespace mgpu
