// SPDX-License-Identifier: MIT
// What every backend must do, as clauses over one. Knows no backend.
#pragma once

#include "backend/backend.hpp"

#include <span>

namespace mgpu {

struct Clause {
  const char* name;
  void (*holds)(Backend& backend);
};

/// Each wants a backend that nobody has opened, and fails by Catch2's assertions.
std::span<const Clause> contract();

}  // namespace mgpu
