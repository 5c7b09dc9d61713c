// SPDX-License-Identifier: MIT
// What is not the same around two sets of results: versions, machines, clocks. Judges nothing.
#pragma once

#include "model/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// Adds one where the texts differ; an empty one becomes "unknown".
void add_difference(std::vector<Difference>& list, std::string what, std::string base,
                    std::string current);

/// Adds those of mgpu, host, kernel, driver, CUDA and the clocks after the samples (medians).
void add_differences(std::vector<Difference>& list, std::span<const Report> base,
                     std::span<const Report> current);

}  // namespace mgpu
