// SPDX-License-Identifier: MIT
// The commands on saved results, which need no device: show, compare and merge.
#pragma once

#include "app.hpp"
#include "model/request.hpp"

namespace mgpu {

/// Throws Error.
void show(const Request& request, const Console& console);

/// Gives the exit code. Throws Error{usage} where a file cannot be read or is not ours.
int compare_files(const Request& request, const Console& console);

/// The results of many nodes as one. Likewise.
int merge_files(const Request& request, const Console& console);

}  // namespace mgpu
