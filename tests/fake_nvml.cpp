// SPDX-License-Identifier: MIT
#include "fake_nvml.hpp"

#include <algorithm>
#include <cstdio>

using namespace mgpu;

namespace {

constexpr int success = 0, not_supported = 3, not_found = 6, insufficient_size = 7;

const FakeGpu& gpu_of(NvmlDevice* device) {
  return *reinterpret_cast<const FakeGpu*>(device);
}

}  // namespace

extern "C" {

FakeNvml* fake_nvml() {
  static FakeNvml fake;
  return &fake;
}

int nvmlInit_v2() {
  return fake_nvml()->init;
}

int nvmlShutdown() {
  return success;
}

const char* nvmlErrorString(int status) {
  return status == 18 ? "Driver/library version mismatch" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "580.95.05");
  return success;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice** device) {
  auto& gpus = fake_nvml()->gpus;
  const auto found = std::ranges::find(gpus, uuid, &FakeGpu::uuid);
  if (found == gpus.end()) return not_found;
  *device = reinterpret_cast<NvmlDevice*>(&*found);
  return success;
}

int nvmlDeviceGetMigMode(NvmlDevice* device, unsigned* current, unsigned* pending) {
  *current = *pending = gpu_of(device).mig;
  return success;
}

int nvmlDeviceGetClockInfo(NvmlDevice* device, int, unsigned* mhz) {
  if (gpu_of(device).sm_mhz == 0) return not_supported;
  *mhz = gpu_of(device).sm_mhz;
  return success;
}

int nvmlDeviceGetPowerUsage(NvmlDevice*, unsigned*) {
  return not_supported;
}

int nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice* device, unsigned* count,
                                            NvmlProcess* processes) {
  const auto& running = gpu_of(device).processes;
  const unsigned room = *count;
  *count = static_cast<unsigned>(running.size());
  if (room < running.size()) return insufficient_size;
  std::ranges::copy(running, processes);
  return success;
}
}
