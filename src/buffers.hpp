// SPDX-License-Identifier: MIT
// Buffers that outlive a case, so that the next one of the same size need not touch fresh pages
// again. Managed memory is never kept: where its pages are belongs to the case.
#pragma once

#include "backend/backend.hpp"

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mgpu {

class Buffers {
 public:
  explicit Buffers(Backend& backend) : backend_(backend) {}

  /// Bytes kept at the sites that `at` holds for and that `specs` would take: they are had for the
  /// asking.
  Bytes kept(const std::function<bool(const Site&)>& at, std::span<const BufferSpec> specs) const;

  /// Frees what is kept and `specs` would not take: where memory is short, or must not be held.
  void trim(std::span<const BufferSpec> specs);

  /// Frees what `wanted` does not hold for.
  void keep_only(const std::function<bool(const BufferSpec&)>& wanted);

  /// One that is kept, else a new one. Blocking; throws what Backend::allocate throws.
  std::unique_ptr<Buffer> take(const BufferSpec& spec);

  /// Keeps a buffer for the cases to come, or frees it.
  void give(const BufferSpec& spec, std::unique_ptr<Buffer> buffer);

 private:
  Backend& backend_;
  std::vector<std::pair<BufferSpec, std::unique_ptr<Buffer>>> kept_;
};

}  // namespace mgpu
