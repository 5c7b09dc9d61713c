// SPDX-License-Identifier: MIT
// Which cases cannot run, and why. The tables of what each engine can reach are here and nowhere
// else.
#pragma once

#include "model/plan.hpp"

namespace mgpu {

/// Why a resolved case cannot run: usage where that is so on every machine, unavailable where it is
/// so on this one; nothing where it can.
std::optional<Skip> refusal(const Case& what, const CaseSpec& spec, const Request& request,
                            const Machine& machine);

}  // namespace mgpu
