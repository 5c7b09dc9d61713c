// SPDX-License-Identifier: MIT
// Names what a thread does for tools that listen (Nsight Systems), through NVTX 3. Measures
// nothing.
#pragma once

namespace mgpu {

/// Opens a range in the calling thread; ranges nest. Nanoseconds where no tool listens; nothing in
/// a build without NVTX.
void nvtx_push(const char* name) noexcept;
void nvtx_pop() noexcept;  ///< closes the innermost

}  // namespace mgpu
