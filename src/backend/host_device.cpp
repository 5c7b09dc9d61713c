// SPDX-License-Identifier: MIT
#include "backend/host_device.hpp"

#include <fmt/format.h>

#include <utility>

namespace mgpu {

HostBuffer::HostBuffer(MemoryKind kind, Bytes bytes, std::unique_ptr<Pages> pages)
    : managed_(kind == MemoryKind::managed), bytes_(bytes), pages_(std::move(pages)) {}

std::byte* HostBuffer::data(Part part) {
  const auto& buffer = static_cast<const HostBuffer&>(*part.buffer);
  if (part.offset > buffer.bytes_ || part.bytes > buffer.bytes_ - part.offset)
    throw Error(ErrorKind::runtime, fmt::format("[{}, +{}) lies outside its buffer of {} bytes",
                                                part.offset, part.bytes, buffer.bytes_));
  return buffer.pages_->data() + part.offset;
}

HostDevice::HostDevice(const CpuGroup& group, Affinity affinity)
    : group_(group),
      affinity_(affinity),
      helpers_(std::make_unique<Helpers>(group_.cpus, affinity)) {}

void HostDevice::set_affinity(Affinity affinity) {
  if (affinity == affinity_) return;
  helpers_ = std::make_unique<Helpers>(group_.cpus, affinity);
  affinity_ = affinity;
}

std::span<const int> HostDevice::cpus() const {
  return affinity_ == Affinity::near ? std::span<const int>(group_.cpus) : std::span<const int>();
}

}  // namespace mgpu
