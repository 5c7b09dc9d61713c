// SPDX-License-Identifier: MIT
// The options of `mgpu topo` that measure, and of plans for another machine.
#pragma once

#include "cli_commands.hpp"

namespace mgpu {

/// --measure and what it is measured with; `settle_matrix` follows once they are applied.
void add_matrix(Options& o, Draft& d);
void settle_matrix(Draft& d);

/// --machine, which is for dry runs: `check_machine` throws Error{usage} elsewhere.
void add_machine(Options& o, Draft& d);
void check_machine(const Request& request, Command command);

}  // namespace mgpu
