// SPDX-License-Identifier: MIT
// What is off about a machine, by what it says of itself and what was measured on it. Measures
// nothing and knows no figure of a model: a device is compared with its like on the same machine.
#pragma once

#include "model/machine.hpp"

#include <optional>
#include <string>
#include <vector>

namespace mgpu {

/// One sentence each, without a stop, by device; empty: nothing was found. A lower PCIe generation
/// is no finding, since links that idle are slowed down.
std::vector<std::string> health_of(const Machine& machine);

/// What a measured value is of the best of its like: the same by the same engine on the same kind
/// of link between the same models. Of a latency the other way round; nullopt without a figure.
std::optional<double> share_of_like(const Machine& machine, const Link& link, const Measured& one);
inline constexpr double enough_of_like = 0.8;

}  // namespace mgpu
