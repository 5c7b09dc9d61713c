// SPDX-License-Identifier: MIT
#include "backend/backend.hpp"
#include "backend/cuda_buffer.hpp"
#include "backend/cuda_machine.hpp"
#include "backend/cuda_worker.hpp"
#include "backend/cupti.hpp"
#include "backend/host_facts.hpp"
#include "backend/host_memory.hpp"
#include "backend/nvml.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

class CudaBackend final : public Backend {
 public:
  Machine machine() override {
    if (machine_) return *machine_;
    Machine machine;
    machine.backend = BackendKind::cuda;
    machine.host = host_facts();
    machine.environment = cuda_environment();
    if (!nvml_) nvml_.emplace();
    describe_gpus(machine, *nvml_);
    return machine_.emplace(std::move(machine));
  }

  void open(std::span<const int> devices, Wait wait, Affinity affinity) override {
    if (!machine_) machine();
    host_.open(*machine_, affinity);
    const auto near = [&](int ordinal) {
      const Device* device = described(ordinal);
      return device && affinity == Affinity::near ? device->cpus : std::vector<int>();
    };
    for (const int ordinal : devices) {
      auto& device = devices_[ordinal];
      if (!device) device = std::make_unique<CudaDevice>(ordinal, wait, near(ordinal));
    }
    for (const auto& [ordinal, device] : devices_) {
      if (!device) continue;
      device->set_wait(wait);
      device->set_cpus(near(ordinal));
    }
  }

  void connect(int device, int peer) override {
    if (device == peer || connected_.contains({device, peer})) return;
    opened(peer);
    opened(device).bind();
    const auto& reaches = machine_->devices.at(static_cast<std::size_t>(device)).peers;
    // What cannot be is not asked for: tools that watch the runtime count that as an error.
    const auto status = reaches.at(static_cast<std::size_t>(peer))
                            ? cudaDeviceEnablePeerAccess(peer, 0)
                            : cudaErrorPeerAccessUnsupported;
    if (status != cudaSuccess) {
      const auto failure = cuda_failure(status, "cudaDeviceEnablePeerAccess", device,
                                        fmt::format("peer GPU {}", peer));
      if (status != cudaErrorPeerAccessAlreadyEnabled) throw cuda_error(failure);
    }
    connected_.insert({device, peer});
  }

  void disconnect(int device, int peer) override {
    if (connected_.erase({device, peer}) == 0) return;
    opened(device).bind();
    if (cudaDeviceDisablePeerAccess(peer) != cudaSuccess) cudaGetLastError();
  }

  Bytes free_memory(Site site) override {
    return site.on_host() ? host_.free(site) : opened(site.index).free_memory();
  }

  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override {
    CudaDevice& device = owner(spec.site);
    if (spec.kind == MemoryKind::pinned || spec.kind == MemoryKind::pageable)
      return std::make_unique<CudaBuffer>(device, spec.kind, host_.allocate(spec.site, spec.bytes));
    const bool managed = spec.kind == MemoryKind::managed;
    return std::make_unique<CudaBuffer>(device, spec.kind, spec.bytes,
                                        managed ? room_for_managed() : device.free_memory());
  }

  std::unique_ptr<Worker> open_worker(int device) override {
    return std::make_unique<CudaWorker>(opened(device), host_);
  }

  void fill(Site by, Part part, Pattern pattern, Bytes base) override {
    if (by.on_host())
      mgpu::fill(host_.helpers(by), host_address(part), part.bytes, pattern, base);
    else
      opened(by.index).fill(address(part), part.bytes, pattern, base);
  }

  Check check(Site by, Part part, Pattern pattern, Bytes base) override {
    if (by.on_host())
      return mgpu::check(host_.helpers(by), host_address(part), part.bytes, pattern, base);
    return opened(by.index).check(address(part), part.bytes, pattern, base);
  }

  double chase(Site by, Part chain, int hops) override {
    if (by.on_host()) return mgpu::chase(host_.helpers(by), host_address(chain), chain.bytes, hops);
    return opened(by.index).chase(address(chain), chain.bytes, hops);
  }

  Nanos now() override { return steady_now(); }

  void prepare_counting() override {
    if (!counter_) counter_.emplace();
  }

  Counted counted(const std::function<void()>& work) override {
    prepare_counting();
    return counter_->count(work);
  }

  std::optional<Telemetry> telemetry(int device) override {
    const Device* known = described(device);
    return nvml_ && known ? nvml_->telemetry(known->uuid, devices_.contains(device)) : std::nullopt;
  }

  std::vector<MemoryHolder> memory_holders(int device) override {
    const Device* known = described(device);
    return nvml_ && known ? nvml_->memory_holders(known->uuid) : std::vector<MemoryHolder>();
  }

 private:
  const Device* described(int device) const {
    const auto place = static_cast<std::size_t>(device);
    return machine_ && device >= 0 && place < machine_->devices.size() ? &machine_->devices[place]
                                                                       : nullptr;
  }

  CudaDevice& opened(int device) const {
    const auto found = devices_.find(device);
    if (found == devices_.end() || !found->second)
      throw Error(ErrorKind::runtime, fmt::format("GPU {} is used before it is opened", device),
                  device);
    return *found->second;
  }

  /// The device whose context allocates for a site; for the host any will do.
  CudaDevice& owner(Site site) const {
    if (site.on_host())
      for (const auto& [ordinal, device] : devices_)
        if (device) return *device;
    return opened(site.index);
  }

  /// Its pages may be on every open GPU and on the host.
  Bytes room_for_managed() const {
    Bytes bytes = host_.free(whole_host);
    for (const auto& [ordinal, device] : devices_)
      if (device) bytes += device->free_memory();
    return bytes;
  }

  std::optional<Nvml> nvml_;        // from machine() on
  std::optional<Machine> machine_;  // likewise
  std::optional<MigrationCounter> counter_;
  HostMemory host_;
  std::map<int, std::unique_ptr<CudaDevice>> devices_;  // never shrinks: workers refer to them
  std::set<std::pair<int, int>> connected_;             // (device that accesses, device that holds)
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
  return std::make_unique<CudaBackend>();
}

}  // namespace mgpu
