// SPDX-License-Identifier: MIT
// What the CUDA runtime and NVML tell about the GPUs. Makes no context.
#pragma once

#include "backend/nvml.hpp"
#include "model/machine.hpp"

namespace mgpu {

/// Driver, devices and links; host and environment are left as they are. Blocking. Throws
/// Error{no_gpu} where CUDA finds none.
void describe_gpus(Machine& machine, const Nvml& nvml);

}  // namespace mgpu
