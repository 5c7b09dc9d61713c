// SPDX-License-Identifier: MIT
// Device and managed memory, aligned as Buffer promises.
#pragma once

#include "backend/cuda_device.hpp"

namespace mgpu {

class CudaBuffer final : public Buffer {
 public:
  /// `device` is spec.device, open, and outlives this. Throws Error{memory} and Error{unavailable}.
  CudaBuffer(CudaDevice& device, const BufferSpec& spec);
  ~CudaBuffer() override;
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  char* data() const { return data_; }

 private:
  void allocate(const BufferSpec& spec, Bytes bytes);

  CudaDevice& device_;
  CudaMemory memory_;
  char* data_ = nullptr;
};

/// The first byte of a part of a CudaBuffer.
inline char* address(Part part) {
  return static_cast<const CudaBuffer&>(*part.buffer).data() + part.offset;
}

}  // namespace mgpu
