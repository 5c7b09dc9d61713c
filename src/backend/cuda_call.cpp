// SPDX-License-Identifier: MIT
#include "backend/cuda_call.hpp"

#include <utility>

namespace mgpu {

CudaFailure cuda_failure(cudaError_t status, std::string_view call, std::optional<int> device,
                         std::string about) {
  cudaGetLastError();
  return {static_cast<int>(status),
          cudaGetErrorName(status),
          cudaGetErrorString(status),
          std::string(call),
          device,
          std::move(about)};
}

void require(cudaError_t status, std::string_view call, int device) {
  if (status != cudaSuccess) throw cuda_error(cuda_failure(status, call, device));
}

cudaError_t make_current(int device) noexcept {
  // Not cudaGetDevice: in a thread that has none it would make a context on GPU 0, chosen or not.
  thread_local int current = -1;
  if (current == device) return cudaSuccess;
  const cudaError_t status = cudaSetDevice(device);
  current = status == cudaSuccess ? device : -1;
  return status;
}

}  // namespace mgpu
