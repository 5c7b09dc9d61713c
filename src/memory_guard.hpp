// SPDX-License-Identifier: MIT
// Whether a case's arrays fit, before anything is allocated.
#pragma once

#include "model/machine.hpp"
#include "model/plan.hpp"

#include <functional>

namespace mgpu {

/// Throws Error{memory} with need and have where the case's arrays exceed 90% of what
/// `free(device)` gives; -1 is the host. `oversubscribe`: managed arrays may spill to the host, but
/// not beyond both.
void check_memory(const Case& what, const Machine& machine, const std::function<Bytes(int)>& free,
                  bool oversubscribe);

}  // namespace mgpu
