// SPDX-License-Identifier: MIT
// Draws charts by gnuplot and graphs by Graphviz, started without a shell: scripts are data on
// stdin, and nothing of them names a file.
#pragma once

#include "model/words.hpp"

#include <string>

namespace mgpu {

enum class Painter { gnuplot, graphviz };

/// Throws Error{unavailable} naming the package where it is not on PATH.
void require_painter(Painter painter);

/// The picture that a script draws to stdout; gnuplot's says itself of which format. Blocking.
/// Throws what require_painter throws, and Error{runtime} with what the program said.
std::string draw(Painter painter, Format format, const std::string& script);

}  // namespace mgpu
