// SPDX-License-Identifier: MIT
// Every call of the CUDA runtime goes through here: its status turned into an Error, and which
// device is current.
#pragma once

#include "backend/cuda_error.hpp"

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace mgpu {

/// The facts of a status that is not success. Clears the thread's last error, which the next launch
/// would report as its own.
CudaFailure cuda_failure(cudaError_t status, std::string_view call, std::optional<int> device,
                         std::string about = {});

/// Throws cuda_error() unless `status` is success.
void require(cudaError_t status, std::string_view call, int device);

/// Makes `device` current for the calling thread, at no cost where it is. Nothing else in the
/// program may change it.
cudaError_t make_current(int device) noexcept;

}  // namespace mgpu
