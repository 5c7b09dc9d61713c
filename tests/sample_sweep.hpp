// SPDX-License-Identifier: MIT
// Sweeps made by hand for the tests of tables and charts. Measures nothing.
#pragma once

#include "model/result.hpp"

namespace mgpu {

/// Ten samples of 1.0 to 1.9 times `ns` on GPUs 0 and 1, so that the median is 1.45 times as long.
CaseResult sample_case_of(Bytes size, Engine engine, double ns);

/// Two sizes by two engines on two GPUs, the last failed, and a skipped case of GPU 1: five rows.
Report sample_sweep();

/// The preset issue-2615 on two GPUs: all 18 cases measured.
Report sample_seed();

}  // namespace mgpu
