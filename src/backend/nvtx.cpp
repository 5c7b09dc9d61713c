// SPDX-License-Identifier: MIT
#include "backend/nvtx.hpp"

// Not every toolkit brings NVTX: in NVIDIA's packages it is one of its own.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

void mgpu::nvtx_push(const char* name) noexcept {
  nvtxRangePushA(name);
}
void mgpu::nvtx_pop() noexcept {
  nvtxRangePop();
}
#else
void mgpu::nvtx_push(const char*) noexcept {}
void mgpu::nvtx_pop() noexcept {}
#endif
