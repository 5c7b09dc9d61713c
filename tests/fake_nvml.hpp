// SPDX-License-Identifier: MIT
// What a library that passes for NVML tells. Shared by that library and the tests that load it.
#pragma once

#include "backend/nvml_calls.hpp"

#include <string>
#include <vector>

namespace mgpu {

struct FakeGpu {
  std::string uuid;
  unsigned sm_mhz = 0;  ///< 0: this GPU does not support the question
  bool mig = false;
  std::vector<NvmlProcess> processes = {};
};

struct FakeNvml {
  int init = 0;                    ///< nvmlReturn_t of nvmlInit_v2
  std::vector<FakeGpu> gpus = {};  ///< in NVML's order
};

}  // namespace mgpu
