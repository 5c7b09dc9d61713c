// SPDX-License-Identifier: MIT
// Draws charts by gnuplot, started without a shell: scripts are data on its stdin, and nothing of
// them names a file.
#pragma once

#include <string>

namespace mgpu {

/// Throws Error{unavailable} naming the package where gnuplot is not on PATH.
void require_gnuplot();

/// The picture that a script draws to stdout. Blocking. Throws Error{runtime} with what gnuplot
/// said.
std::string draw(const std::string& script);

}  // namespace mgpu
