// SPDX-License-Identifier: MIT
// The loops of the host backend over bytes in memory: copy, fill, check. Knows nothing of threads,
// buffers or streams.
#pragma once

#include "backend/backend.hpp"
#include "model/pattern.hpp"
#include "model/units.hpp"

#include <cstddef>

namespace mgpu {

/// A whole copy of at least this many bytes is faster by non-temporal stores than by memcpy.
inline constexpr Bytes streaming_from = Bytes{4} << 20;

/// Copies by memcpy, or by non-temporal stores where `streaming` (whatever the size of this block
/// of the copy).
void copy_by_memcpy(std::byte* destination, const std::byte* source, Bytes bytes, bool streaming);

/// Copies by a plain loop of `access` (4, 8 or 16) bytes at any alignment; the tail by single
/// bytes.
void copy_by_access(std::byte* destination, const std::byte* source, Bytes bytes, int access);

/// Writes what `pattern` has at `base` of an array and on.
void fill_pattern(std::byte* data, Bytes bytes, Pattern pattern, Bytes base);

/// Compares with what `pattern` has at `base` and on. Offsets count from `data`.
Check check_pattern(const std::byte* data, Bytes bytes, Pattern pattern, Bytes base);

}  // namespace mgpu
