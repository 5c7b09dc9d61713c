// SPDX-License-Identifier: MIT
// Which of many values that should be equal are not. Knows numbers alone.
#pragma once

#include "model/words.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mgpu {

/// Which way a GPU differs from the others of its fleet.
enum class Outlier { slow, fast };
template <>
inline constexpr auto vocabulary<Outlier> = std::to_array<Word<Outlier>>({
    {Outlier::slow, "slow", "takes longer than the fleet, beyond floor and noise"},
    {Outlier::fast, "fast", "takes less time than the fleet, beyond floor and noise"},
});

/// Of fewer values none is judged.
inline constexpr std::size_t enough_to_judge = 4;

struct Outliers {
  double median = 0, mad = 0;       ///< MAD: the median absolute deviation from the median
  std::optional<double> threshold;  ///< distance from the median; none: too few to tell
  std::vector<std::optional<Outlier>> found;  ///< by value
};

/// An outlier lies further from the median than max(k 1.4826 MAD, floor median), where k = max(3.5,
/// z(1 - 0.005/N)); `floor` is a share. At least one value. (3.5: Iglewicz and Hoaglin, "How to
/// Detect and Handle Outliers", 1993; z is for fleets so large that 3.5 would be passed by chance.)
///
/// False alarms, as the share of healthy fleets with normal noise in which any value is flagged: at
/// most 1% where the noise's sd is a fifth of the floor or less. With more of it the MAD decides,
/// and of few values it is itself uncertain: 17% of fleets of 4, 13% of 8, 5% of 64, 2% of 256, 1%
/// of 1000 and more where the floor is 0. Noise with tails is flagged more often still.
Outliers find_outliers(std::span<const double> values, double floor);

}  // namespace mgpu
