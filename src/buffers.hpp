// SPDX-License-Identifier: MIT
// Buffers that outlive a case, so that the next one of the same size need not touch fresh pages
// again. Managed memory is never kept: where its pages are belongs to the case.
#pragma once

#include "backend/backend.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mgpu {

class Buffers {
 public:
  explicit Buffers(Backend& backend) : backend_(backend) {}

  /// Frees what is kept and would not be taken for `specs`. Before free memory is asked for.
  void prepare(std::span<const BufferSpec> specs);

  /// Bytes kept on a device: they are had for the asking.
  Bytes kept(int device) const;

  /// One that is kept, else a new one. Blocking; throws what Backend::allocate throws.
  std::unique_ptr<Buffer> take(const BufferSpec& spec);

  /// Keeps a buffer for the cases to come, or frees it.
  void give(const BufferSpec& spec, std::unique_ptr<Buffer> buffer);

 private:
  Backend& backend_;
  std::vector<std::pair<BufferSpec, std::unique_ptr<Buffer>>> kept_;
};

}  // namespace mgpu
