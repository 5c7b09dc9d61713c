// SPDX-License-Identifier: MIT
#include "backend/cuda_buffer.hpp"

#include "model/units.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace mgpu {

CudaBuffer::CudaBuffer(CudaDevice& device, MemoryKind kind, Bytes bytes, Bytes have)
    : device_(device) {
  // The runtime promises 256 bytes only; unified memory moves in blocks of 2 MiB of the address.
  allocate(kind, bytes, have);
  if (bytes >= managed_block) {
    std::size_t room = bytes;
    void* start = data_;
    if (std::align(managed_block, bytes, start, room) == nullptr) {
      memory_.reset();
      allocate(kind, bytes + managed_block, have);
      room = bytes + managed_block;
      start = data_;
      std::align(managed_block, bytes, start, room);
    }
    data_ = static_cast<char*>(start);
  }
  if (kind == MemoryKind::managed) host_data_ = data_;
}

CudaBuffer::CudaBuffer(CudaDevice& device, MemoryKind kind, std::unique_ptr<Pages> pages)
    : device_(device), pages_(std::move(pages)) {
  host_data_ = data_ = reinterpret_cast<char*>(pages_->data());
  if (kind != MemoryKind::pinned) return;
  device_.bind();
  const auto require_registered = [&](cudaError_t status, const char* call) {
    if (status != cudaSuccess)
      throw cuda_error(cuda_failure(status, call, device_.ordinal(),
                                    fmt::format("{} wanted", format_memory(pages_->size()))));
  };
  require_registered(cudaHostRegister(host_data_, pages_->size(),
                                      cudaHostRegisterPortable | cudaHostRegisterMapped),
                     "cudaHostRegister");
  registration_.reset(host_data_);
  // The same address, but where a GPU cannot use the host's; then all are to use this one.
  void* mapped = nullptr;
  require_registered(cudaHostGetDevicePointer(&mapped, host_data_, 0), "cudaHostGetDevicePointer");
  data_ = static_cast<char*>(mapped);
}

void CudaBuffer::allocate(MemoryKind kind, Bytes bytes, Bytes have) {
  const bool managed = kind == MemoryKind::managed;
  const auto refuse = [&](cudaError_t status) {
    std::string about = fmt::format("{} wanted", format_memory(bytes));
    if (status == cudaErrorMemoryAllocation) about += fmt::format(", {} free", format_memory(have));
    throw cuda_error(cuda_failure(status, managed ? "cudaMallocManaged" : "cudaMalloc",
                                  device_.ordinal(), about));
  };
  // Not left to the runtime: tools that watch it count each refusal as an error of the program, and
  // managed memory is granted beyond what there is.
  if (bytes > have) refuse(cudaErrorMemoryAllocation);
  device_.bind();
  void* memory = nullptr;
  const auto status = managed ? cudaMallocManaged(&memory, bytes) : cudaMalloc(&memory, bytes);
  if (status != cudaSuccess) refuse(status);
  memory_.reset(memory);
  data_ = static_cast<char*>(memory);
}

CudaBuffer::~CudaBuffer() {
  make_current(device_.ordinal());
}

std::byte* host_address(Part part) {
  char* const data = static_cast<const CudaBuffer&>(*part.buffer).host_data();
  if (data == nullptr)
    throw Error(ErrorKind::runtime, "memory of a GPU cannot be touched by a CPU");
  return reinterpret_cast<std::byte*>(data) + part.offset;
}

}  // namespace mgpu
