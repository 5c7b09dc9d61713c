// SPDX-License-Identifier: MIT
// Several runs of one case as one trial. Reads no file, compares nothing.
#pragma once

#include "model/result.hpp"

#include <vector>

namespace mgpu {

/// Measured results of one case on the same devices become one, in the place of the first: their
/// samples one after the other, and what was found beside the samples in the run whose median is in
/// the middle. Everything else stays as it is, as do results whose samples are not all stored.
std::vector<CaseResult> with_rounds_pooled(const std::vector<CaseResult>& cases);

}  // namespace mgpu
