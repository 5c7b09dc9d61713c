// SPDX-License-Identifier: MIT
// What results are held against, as the user asks for it. Judges nothing.
#pragma once

#include "model/ratio.hpp"
#include "model/units.hpp"
#include "model/words.hpp"

#include <optional>
#include <string>

namespace mgpu {

/// --expect [SIZE:][copied:|moved:]RATE
struct Expectation {
  std::string text;            ///< as given
  std::optional<Size> size;    ///< of the cases it is for; else it is for all
  std::optional<Basis> basis;  ///< what the rate counts; else `moved`, of local copies alone
  double rate = 0;             ///< bytes per second
};

struct CompareOptions {
  Metric metric = Metric::median;
  double tolerance = 5;  ///< per cent; slower is beyond 1 + tolerance, faster beyond its inverse
  bool force = false;    ///< by position, whatever the cases are
};

}  // namespace mgpu
