// SPDX-License-Identifier: MIT
// What is off about a machine, by what it says of itself. Measures nothing and knows no figure of a
// model: a device is compared with its like on the same machine.
#pragma once

#include "model/machine.hpp"

#include <string>
#include <vector>

namespace mgpu {

/// One sentence each, without a stop, by device; empty: nothing was found. A lower PCIe generation
/// is no finding, since links that idle are slowed down.
std::vector<std::string> health_of(const Machine& machine);

}  // namespace mgpu
