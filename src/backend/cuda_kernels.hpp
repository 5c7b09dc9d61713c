// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend as functions that queue them. Plain C++17, read by nvcc too;
// throws nothing, knows no policy.
#pragma once

#include "model/pattern.hpp"

#include <cstdint>
#include <driver_types.h>

namespace mgpu {

/// All launchers are stream-ordered, want the stream's device to be current, take any alignment and
/// launch nothing for zero bytes. They return what cudaGetLastError says, so an earlier error of
/// the thread has to be cleared before.

/// Ranges must not overlap. A thread moves `access` bytes (4, 8 or 16) where both addresses are
/// alike modulo that, else the widest of 8, 4 and 1 for which they are.
cudaError_t launch_copy(void* destination, const void* source, std::uint64_t bytes, int access,
                        cudaStream_t stream);

/// `base` is the array offset of the first byte.
cudaError_t launch_fill(void* destination, std::uint64_t bytes, Pattern pattern, std::uint64_t base,
                        cudaStream_t stream);

/// What a check adds up, in device memory. To be {0, ~0, {}} before.
struct CheckCounts {
  unsigned long long bad = 0;
  unsigned long long first = ~0ull;  ///< offset of the first wrong byte
  unsigned char got[8] = {};         ///< the bytes from there on; 0 past the end
};
cudaError_t launch_check(const void* data, std::uint64_t bytes, Pattern pattern, std::uint64_t base,
                         CheckCounts* counts, cudaStream_t stream);

/// Makes a chain of a range that is aligned to 8 bytes: each of its lines holds the address of the
/// next one, the last that of the first. In order, as no GPU fetches ahead.
cudaError_t launch_chain(void* chain, std::uint64_t bytes, cudaStream_t stream);

/// One thread, on the `seat`-th of so many multiprocessors, follows a chain from its line `first`.
cudaError_t launch_chase(const void* chain, std::uint64_t bytes, std::uint64_t first, int hops,
                         int seat, int multiprocessors, cudaStream_t stream);

}  // namespace mgpu
