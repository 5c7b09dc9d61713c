// SPDX-License-Identifier: MIT
// Reports made by hand for the tests of renderers and reader. Measures nothing.
#pragma once

#include "model/result.hpp"

namespace mgpu {

/// Two GPUs and one measured case of 96 fast samples and four slow ones, with all that a result can
/// carry.
Report sample_report();

/// The same on CPU devices: what only GPUs have is absent.
Report sample_host_report();

Report sample_topology();

/// A planned case and a skipped one.
Report sample_plan();

}  // namespace mgpu
