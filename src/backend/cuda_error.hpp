// SPDX-License-Identifier: MIT
// CUDA error number -> Error. Pure, without CUDA's headers: tested where there is no toolkit too.
#pragma once

#include "model/error.hpp"

#include <optional>
#include <string>

namespace mgpu {

/// A CUDA runtime call that failed.
struct CudaFailure {
  int code = 0;                    ///< cudaError_t
  std::string name;                ///< cudaGetErrorName
  std::string text;                ///< cudaGetErrorString
  std::string call;                ///< the function, or what was launched
  std::optional<int> device = {};  ///< ordinal it was meant for
  std::string about = {};          ///< what makes sense of it: "4 GB wanted, 1 GB free"
};

/// Kind, message and `lost` of a failure. Lost: those after which "the process must be terminated
/// and relaunched" (driver_types.h) and those of broken hardware.
Error cuda_error(const CudaFailure& failure);

/// A failure to find any GPU, always of kind no_gpu. Versions as cudaDriverGetVersion (0: no
/// driver) and cudaRuntimeGetVersion give.
Error cuda_start_error(const CudaFailure& failure, int driver_version, int runtime_version);

/// 13000 -> "13.0".
std::string cuda_version(int version);

}  // namespace mgpu
