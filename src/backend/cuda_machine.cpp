// SPDX-License-Identifier: MIT
#include "backend/cuda_machine.hpp"

#include "backend/cuda_call.hpp"
#include "backend/host_facts.hpp"
#include "backend/nvml.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

int version(cudaError_t (*of)(int*)) {
  int number = 0;
  return of(&number) == cudaSuccess ? number : 0;
}

/// The number of GPUs, at least 1.
int count_gpus() {
  // Where it fails the runtime leaves the count as it was.
  int count = 0;
  auto status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status != cudaSuccess) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const auto about = visible ? fmt::format("CUDA_VISIBLE_DEVICES={}", visible) : std::string();
    throw cuda_start_error(cuda_failure(status, "cudaGetDeviceCount", std::nullopt, about),
                           version(cudaDriverGetVersion), version(cudaRuntimeGetVersion));
  }
  return count;
}

/// Attributes instead of members of cudaDeviceProp, which CUDA 13 has fewer of.
int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute", device);
  return value;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string compute_mode(int mode) {
  switch (mode) {
    case cudaComputeModeDefault:
      return "default";
    case cudaComputeModeExclusive:
      return "exclusive_thread";
    case cudaComputeModeProhibited:
      return "prohibited";
    case cudaComputeModeExclusiveProcess:
      return "exclusive_process";
    default:
      return {};
  }
}

/// What a pair can do together, where CUDA tells.
std::optional<int> pair_attribute(cudaDeviceP2PAttr which, const Link& link) {
  int value = 0;
  if (cudaDeviceGetP2PAttribute(&value, which, link.from, link.to) == cudaSuccess) return value;
  cudaGetLastError();
  return std::nullopt;
}

Device describe(int ordinal, int count, const Nvml& nvml) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties", ordinal);
  Device device;
  device.ordinal = ordinal;
  device.name = properties.name;
  const auto identity = nvml.identify(uuid_text(properties.uuid));
  device.uuid = identity.uuid;
  // Without NVML the name still tells: "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
  device.mig = identity.mig || device.name.find(" MIG ") != std::string::npos;
  device.pci = fmt::format("{:08x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID,
                           properties.pciDeviceID);
  device.memory_bytes = properties.totalGlobalMem;
  if (const int bytes = attribute(cudaDevAttrL2CacheSize, ordinal); bytes > 0)
    device.l2_bytes = static_cast<Bytes>(bytes);
  // Two transfers a clock on every pin; the clock is in kHz.
  const double khz = attribute(cudaDevAttrMemoryClockRate, ordinal);
  const double bits = attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal);
  if (khz > 0 && bits > 0) device.memory_peak = 2 * khz * 1000 * bits / 8;
  const auto has = [ordinal](cudaDeviceAttr which) { return attribute(which, ordinal) != 0; };
  device.capability = fmt::format("{}.{}", properties.major, properties.minor);
  device.compute_mode = compute_mode(attribute(cudaDevAttrComputeMode, ordinal));
  device.sms = properties.multiProcessorCount;
  device.ecc = has(cudaDevAttrEccEnabled);
  NearCpus near = near_cpus(device.pci);
  device.numa = near.numa;
  device.near_cpus = std::move(near.all);
  device.cpus = std::move(near.cpus);
  device.managed = has(cudaDevAttrManagedMemory);
  device.concurrent_managed = has(cudaDevAttrConcurrentManagedAccess);
  device.pageable_access = has(cudaDevAttrPageableMemoryAccess);
  device.host_page_tables = has(cudaDevAttrPageableMemoryAccessUsesHostPageTables);
  device.host_access = has(cudaDevAttrDirectManagedMemAccessFromHost);
  for (int peer = 0; peer < count; ++peer) {
    int can = 1;
    if (peer != ordinal)
      require(cudaDeviceCanAccessPeer(&can, ordinal, peer), "cudaDeviceCanAccessPeer", ordinal);
    device.peers.push_back(can != 0);
  }
  return device;
}

}  // namespace

void describe_gpus(Machine& machine, const Nvml& nvml) {
  const int count = count_gpus();
  machine.driver = {nvml.driver_version(), cuda_version(version(cudaDriverGetVersion)),
                    cuda_version(version(cudaRuntimeGetVersion)), nvml.state()};
  for (int i = 0; i < count; ++i) machine.devices.push_back(describe(i, count, nvml));
  std::vector<std::string> uuids;
  for (const Device& device : machine.devices) uuids.push_back(device.uuid);
  join_topology(machine, nvml.topology(uuids));
  for (Link& link : machine.links) {
    if (link.from == host_end || link.to == host_end) continue;
    link.performance_rank = pair_attribute(cudaDevP2PAttrPerformanceRank, link);
    const auto atomics = pair_attribute(cudaDevP2PAttrNativeAtomicSupported, link);
    if (link.claimed.read && !link.claimed.atomics && atomics) link.claimed.atomics = *atomics != 0;
  }
}

}  // namespace mgpu
