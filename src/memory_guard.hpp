// SPDX-License-Identifier: MIT
// Whether a case's arrays fit, before anything is allocated.
#pragma once

#include "model/machine.hpp"
#include "model/plan.hpp"

#include <functional>

namespace mgpu {

/// The site that stands for the memory which a site draws on: a GPU, or a NUMA node, which is
/// whole_host where it is not known. CPU devices of one node share its memory.
Site pool_of(const Site& site, const Machine& machine);

/// Throws Error{memory} with need and have where the case's arrays exceed 90% of what `free(pool)`
/// gives, of a pool or of whole_host. `oversubscribe`: managed arrays may spill to the host, but
/// not beyond both.
void check_memory(const Case& what, const Machine& machine,
                  const std::function<Bytes(const Site&)>& free, bool oversubscribe);

}  // namespace mgpu
