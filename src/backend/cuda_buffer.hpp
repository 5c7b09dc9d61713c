// SPDX-License-Identifier: MIT
// Memory of a device, managed memory, and memory of the host that devices reach.
#pragma once

#include "backend/cpus.hpp"
#include "backend/cuda_device.hpp"

#include <memory>

namespace mgpu {

struct UnregisterMemory {
  void operator()(void* memory) const noexcept { cudaHostUnregister(memory); }
};
using CudaRegistration = std::unique_ptr<void, UnregisterMemory>;

/// Made with the device current, which is open and outlives the buffer.
class CudaBuffer final : public Buffer {
 public:
  /// Device or managed memory, aligned as Buffer promises; `have` is what there is. Throws
  /// Error{memory} and Error{unavailable}.
  CudaBuffer(CudaDevice& device, MemoryKind kind, Bytes bytes, Bytes have);
  /// Pageable memory, or pinned: locked and mapped for all devices. Throws as above.
  CudaBuffer(CudaDevice& device, MemoryKind kind, std::unique_ptr<Pages> pages);
  ~CudaBuffer() override;
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  char* data() const { return data_; }            ///< for devices
  char* host_data() const { return host_data_; }  ///< for CPUs; null where they cannot reach it

 private:
  void allocate(MemoryKind kind, Bytes bytes, Bytes have);

  CudaDevice& device_;
  CudaMemory memory_;
  std::unique_ptr<Pages> pages_;
  CudaRegistration registration_;  // of the pages: goes before them
  char* data_ = nullptr;
  char* host_data_ = nullptr;
};

/// The first byte of a part of a CudaBuffer, for devices.
inline char* address(Part part) {
  return static_cast<const CudaBuffer&>(*part.buffer).data() + part.offset;
}

/// The same for CPUs. Error{runtime} where they cannot reach it.
std::byte* host_address(Part part);

}  // namespace mgpu
