// SPDX-License-Identifier: MIT
#include "backend/backend.hpp"
#include "backend/cuda_buffer.hpp"
#include "backend/cuda_machine.hpp"
#include "backend/cuda_worker.hpp"
#include "backend/cupti.hpp"
#include "backend/host_facts.hpp"
#include "backend/nvml.hpp"

#include <fmt/format.h>

#include <map>

namespace mgpu {
namespace {

class CudaBackend final : public Backend {
 public:
  Machine machine() override {
    Machine machine;
    machine.backend = BackendKind::cuda;
    machine.host = host_facts();
    machine.environment = cuda_environment();
    if (!nvml_) nvml_.emplace();
    describe_gpus(machine, *nvml_);
    for (const Device& device : machine.devices) uuids_[device.ordinal] = device.uuid;
    return machine;
  }

  void open(std::span<const int> devices, Wait wait) override {
    for (const int ordinal : devices) {
      auto& device = devices_[ordinal];
      if (device)
        device->set_wait(wait);
      else
        device = std::make_unique<CudaDevice>(ordinal, wait);
    }
  }

  void connect(int device, int peer) override {
    if (device == peer) return;
    opened(peer);
    opened(device).bind();
    const auto status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status == cudaSuccess) return;
    const auto failure = cuda_failure(status, "cudaDeviceEnablePeerAccess", device,
                                      fmt::format("peer GPU {}", peer));
    if (status != cudaErrorPeerAccessAlreadyEnabled) throw cuda_error(failure);
  }

  void disconnect(int device, int peer) override {
    if (device == peer) return;
    opened(device).bind();
    if (cudaDeviceDisablePeerAccess(peer) != cudaSuccess) cudaGetLastError();
  }

  Bytes free_memory(int device) override {
    return device < 0 ? available_memory() : opened(device).free_memory();
  }

  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override {
    return std::make_unique<CudaBuffer>(opened(spec.device), spec);
  }

  std::unique_ptr<Worker> open_worker(int device) override {
    return std::make_unique<CudaWorker>(opened(device));
  }

  void fill(int device, Part part, Pattern pattern, Bytes base) override {
    opened(device).fill(address(part), part.bytes, pattern, base);
  }

  Check check(int device, Part part, Pattern pattern, Bytes base) override {
    return opened(device).check(address(part), part.bytes, pattern, base);
  }

  Nanos now() override { return steady_now(); }

  Counted counted(const std::function<void()>& work) override { return count_migrations(work); }

  std::optional<Telemetry> telemetry(int device) override {
    const auto uuid = uuids_.find(device);
    return nvml_ && uuid != uuids_.end() ? nvml_->telemetry(uuid->second) : std::nullopt;
  }

 private:
  CudaDevice& opened(int device) const {
    const auto found = devices_.find(device);
    if (found == devices_.end() || !found->second)
      throw Error(ErrorKind::runtime, fmt::format("GPU {} is used before it is opened", device),
                  device);
    return *found->second;
  }

  std::optional<Nvml> nvml_;                            // from machine() on
  std::map<int, std::string> uuids_;                    // by ordinal, as NVML knows the devices
  std::map<int, std::unique_ptr<CudaDevice>> devices_;  // never shrinks: workers refer to them
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
  return std::make_unique<CudaBackend>();
}

}  // namespace mgpu
