// SPDX-License-Identifier: MIT
#include "backend/backend.hpp"

namespace mgpu {
namespace {

#if MGPU_HAS_CUDA
constexpr bool has_cuda = true;
std::unique_ptr<Backend> make_cuda(std::optional<int>) {
  return make_cuda_backend();
}
#else
constexpr bool has_cuda = false;
std::unique_ptr<Backend> make_cuda(std::optional<int>) {
  throw Error(ErrorKind::no_gpu,
              "this mgpu was built without CUDA: use --backend host, or build with nvcc");
}
#endif

}  // namespace

std::span<const BackendRow> builtin_backends() {
  static const std::array rows{
      BackendRow{BackendKind::cuda, has_cuda, make_cuda},
      BackendRow{BackendKind::host, true, make_host_backend},
  };
  return rows;
}

}  // namespace mgpu
