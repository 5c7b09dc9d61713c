// SPDX-License-Identifier: MIT
#include "backend/backend.hpp"
#include "backend/cpus.hpp"
#include "backend/host_device.hpp"
#include "backend/host_facts.hpp"
#include "backend/host_memory.hpp"
#include "backend/host_worker.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace mgpu {
namespace {

/// What `make` gives, which has threads of its own for a device.
template <class Make>
auto started(int device, const Make& make) {
  try {
    return make();
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::runtime,
                fmt::format("cannot start the threads of device {}: {}", device, error.what()),
                device);
  }
}

class HostBackend final : public Backend {
 public:
  explicit HostBackend(std::optional<int> count) : count_(count) {}

  Machine machine() override {
    load();
    return machine_;
  }

  void open(std::span<const int> ordinals, Wait, Affinity affinity) override {
    load();
    memory_.open(machine_, affinity);
    for (const int ordinal : ordinals) {
      const CpuGroup& group = group_of(ordinal);
      auto& device = devices_[static_cast<std::size_t>(ordinal)];
      if (!device)
        device = started(ordinal, [&] { return std::make_unique<HostDevice>(group, affinity); });
    }
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i])
        started(static_cast<int>(i), [&] { return devices_[i]->set_affinity(affinity); });
  }

  void connect(int device, int peer) override {
    group_of(device);
    group_of(peer);
  }

  /// Devices of one node share one pool: each is told all of it.
  Bytes free_memory(Site site) override {
    load();
    if (!site.on_host()) group_of(site.index);
    return memory_.free(site);
  }

  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override {
    if (!spec.site.on_host()) opened(spec.site.index);
    const bool pinned = spec.kind == MemoryKind::pinned;
    auto pages = pinned || spec.kind == MemoryKind::pageable
                     ? memory_.allocate(spec.site, spec.bytes)
                     // Managed memory may move, so it is bound nowhere.
                     : memory_.reserve(spec.kind == MemoryKind::managed ? whole_host : spec.site,
                                       spec.bytes);
    if (pinned) pages->lock();
    return std::make_unique<HostBuffer>(spec.kind, spec.bytes, std::move(pages));
  }

  std::unique_ptr<Worker> open_worker(int device) override {
    HostDevice& executes = opened(device);
    return started(device, [&]() -> std::unique_ptr<Worker> {
      return std::make_unique<HostWorker>(executes, memory_, retired_delay_);
    });
  }

  void fill(Site by, Part part, Pattern pattern, Bytes base) override {
    mgpu::fill(helpers(by), HostBuffer::data(part), part.bytes, pattern, base);
  }

  Check check(Site by, Part part, Pattern pattern, Bytes base) override {
    return mgpu::check(helpers(by), HostBuffer::data(part), part.bytes, pattern, base);
  }

  double chase(Site by, Part chain, int hops) override {
    return mgpu::chase(helpers(by), HostBuffer::data(chain), chain.bytes, hops);
  }

  Nanos now() override { return steady_now(); }

  bool marks_are_free() const override { return true; }
  std::optional<Nanos> run_queue_delay() override {
    const auto living = mgpu::run_queue_delay();
    if (!living) return std::nullopt;
    // Threads of others end too and take their share with them: the sum must not go back.
    return delay_ = std::max(delay_, *living + retired_delay_);
  }

 private:
  void load() {
    if (!groups_.empty()) return;
    const Topology& topology = memory_.topology();
    groups_ = make_groups(topology.nodes(), topology.caches(), count_);
    if (groups_.empty())
      throw Error(ErrorKind::no_gpu, "no NUMA node has a CPU that this process may use");
    devices_.resize(groups_.size());
    machine_.backend = BackendKind::host;
    machine_.host = host_facts();
    machine_.driver.nvml = "not used by the host backend";
    machine_.environment = cuda_environment();
    for (const CpuGroup& group : groups_) machine_.devices.push_back(describe(group));
    machine_.links = plain_links(machine_);
    memory_.open(machine_, Affinity::near);
  }

  Device describe(const CpuGroup& group) {
    Device device;
    device.ordinal = static_cast<int>(machine_.devices.size());
    device.name = fmt::format("{} CPU{} of NUMA node{} {}", group.cpus.size(),
                              group.cpus.size() == 1 ? "" : "s", group.nodes.size() == 1 ? "" : "s",
                              fmt::join(group.nodes, ","));
    device.memory_bytes = memory_.topology().nodes().size() == 1
                              ? machine_.host.memory_bytes
                              : std::optional(group.memory_bytes);
    if (group.cache_bytes > 0) device.l2_bytes = group.cache_bytes;
    if (group.nodes.size() == 1) device.numa = group.nodes.front();
    device.near_cpus = device.cpus = group.cpus;
    device.pageable_access = true;
    device.peers.assign(groups_.size(), true);
    return device;
  }

  Helpers& helpers(Site by) {
    return by.on_host() ? memory_.helpers(by) : opened(by.index).helpers();
  }

  const CpuGroup& group_of(int ordinal) {
    load();
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= groups_.size())
      throw Error(ErrorKind::unavailable,
                  fmt::format("there is no device {}: the host backend has {}, see --host-devices",
                              ordinal, groups_.size()),
                  ordinal);
    return groups_[static_cast<std::size_t>(ordinal)];
  }

  HostDevice& opened(int ordinal) {
    group_of(ordinal);
    const auto& device = devices_[static_cast<std::size_t>(ordinal)];
    if (!device)
      throw Error(ErrorKind::runtime, fmt::format("device {} was not opened", ordinal), ordinal);
    return *device;
  }

  const std::optional<int> count_;
  HostMemory memory_;
  std::vector<CpuGroup> groups_;
  Machine machine_;
  std::vector<std::unique_ptr<HostDevice>> devices_;
  std::atomic<Nanos> retired_delay_ = 0;  // of queue threads that have ended
  Nanos delay_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(std::optional<int> devices) {
  return std::make_unique<HostBackend>(devices);
}

}  // namespace mgpu
