// SPDX-License-Identifier: MIT
#include "backend/cuda_buffer.hpp"

#include "model/units.hpp"

#include <fmt/format.h>

#include <memory>

namespace mgpu {

CudaBuffer::CudaBuffer(CudaDevice& device, const BufferSpec& spec) : device_(device) {
  // The runtime promises 256 bytes only; unified memory moves in blocks of 2 MiB of the address.
  allocate(spec, spec.bytes);
  if (spec.bytes < managed_block) return;
  std::size_t room = spec.bytes;
  void* start = data_;
  if (std::align(managed_block, spec.bytes, start, room) == nullptr) {
    memory_.reset();
    allocate(spec, spec.bytes + managed_block);
    room = spec.bytes + managed_block;
    start = data_;
    std::align(managed_block, spec.bytes, start, room);
  }
  data_ = static_cast<char*>(start);
}

void CudaBuffer::allocate(const BufferSpec& spec, Bytes bytes) {
  device_.bind();
  const bool managed = spec.kind == MemoryKind::managed;
  void* memory = nullptr;
  const auto status = managed ? cudaMallocManaged(&memory, bytes) : cudaMalloc(&memory, bytes);
  if (status != cudaSuccess) {
    std::string about = fmt::format("{} wanted", format_memory(bytes));
    // Asked without throwing: after a lost GPU this fails too, and the first error is what matters.
    std::size_t free = 0, total = 0;
    if (status == cudaErrorMemoryAllocation && cudaMemGetInfo(&free, &total) == cudaSuccess)
      about += fmt::format(", {} free", format_memory(free));
    throw cuda_error(cuda_failure(status, managed ? "cudaMallocManaged" : "cudaMalloc",
                                  device_.ordinal(), about));
  }
  memory_.reset(memory);
  data_ = static_cast<char*>(memory);
}

CudaBuffer::~CudaBuffer() {
  make_current(device_.ordinal());
}

}  // namespace mgpu
