// SPDX-License-Identifier: MIT
#include "backend/backend.hpp"
#include "backend/cpus.hpp"
#include "backend/host_copy.hpp"
#include "backend/host_device.hpp"
#include "backend/host_facts.hpp"
#include "backend/host_worker.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <system_error>

namespace mgpu {
namespace {

/// Makes what has threads of its own.
template <class T, class... Args>
std::unique_ptr<T> start(int device, Args&... args) {
  try {
    return std::make_unique<T>(args...);
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
    Machine machine;
    machine.backend = BackendKind::host;
    machine.host = host_facts();
    machine.driver.nvml = "not used by the host backend";
    machine.environment = cuda_environment();
    for (const CpuGroup& group : groups_) {
      Device device;
      device.ordinal = static_cast<int>(machine.devices.size());
      device.name = fmt::format("{} CPU{} of NUMA node{} {}", group.cpus.size(),
                                group.cpus.size() == 1 ? "" : "s",
                                group.nodes.size() == 1 ? "" : "s", fmt::join(group.nodes, ","));
      device.memory_bytes = topology_->nodes().size() == 1 ? machine.host.memory_bytes
                                                           : std::optional(group.memory_bytes);
      if (group.cache_bytes > 0) device.l2_bytes = group.cache_bytes;
      if (group.nodes.size() == 1) device.numa = group.nodes.front();
      device.cpus = group.cpus;
      device.peers.assign(groups_.size(), true);
      machine.devices.push_back(std::move(device));
    }
    return machine;
  }

  void open(std::span<const int> ordinals, Wait) override {
    load();
    for (const int ordinal : ordinals) {
      const CpuGroup& group = group_of(ordinal);
      auto& device = devices_[static_cast<std::size_t>(ordinal)];
      bool movable = topology_->nodes().size() > 1;
      if (!device) device = start<HostDevice>(ordinal, group, movable);
    }
  }

  void connect(int device, int peer) override {
    group_of(device);
    group_of(peer);
  }

  /// Devices of one node share one pool: each is told all of it.
  Bytes free_memory(int device) override {
    if (device == -1) return available_memory();
    const CpuGroup& group = group_of(device);
    const bool whole = topology_->nodes().size() == 1 || group.nodes.size() != 1;
    return whole ? available_memory() : available_on_node(group.nodes.front());
  }

  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override {
    const HostDevice& device = opened(spec.device);
    // Linux gives more than it has and kills whoever then touches it.
    const Bytes have = spec.kind == MemoryKind::device ? free_memory(spec.device) : free_memory(-1);
    if (spec.bytes > have)
      throw Error(
          ErrorKind::memory,
          fmt::format("not enough memory on device {}: need {}, have {}; use a smaller --size",
                      spec.device, format_memory(spec.bytes), format_memory(have)),
          spec.device);
    auto buffer = std::make_unique<HostBuffer>(spec);
    if (!buffer->managed() && device.numa)
      topology_->bind_memory(buffer->pages().data(), buffer->pages().size(), *device.numa, false);
    return buffer;
  }

  std::unique_ptr<Worker> open_worker(int device) override {
    HostDevice& executes = opened(device);
    return start<HostWorker>(device, executes, *topology_, retired_delay_);
  }

  void fill(int device, Part part, Pattern pattern, Bytes base) override {
    std::byte* data = HostBuffer::data(part);
    const auto block = [&](Bytes offset, Bytes bytes) {
      fill_pattern(data + offset, bytes, pattern, base + offset);
    };
    opened(device).helpers.run(part.bytes, std::nullopt, std::cref(block));
  }

  Check check(int device, Part part, Pattern pattern, Bytes base) override {
    const std::byte* data = HostBuffer::data(part);
    std::mutex mutex;
    Check sum;
    const auto block = [&](Bytes offset, Bytes bytes) {
      const Check found = check_pattern(data + offset, bytes, pattern, base + offset);
      if (found.bad == 0) return;
      const std::lock_guard lock(mutex);
      sum.first = sum.bad == 0 ? offset + found.first : std::min(sum.first, offset + found.first);
      sum.bad += found.bad;
    };
    opened(device).helpers.run(part.bytes, std::nullopt, std::cref(block));
    for (Bytes i = 0; sum.bad > 0 && i < std::min<Bytes>(sum.got.size(), part.bytes - sum.first);
         ++i)
      sum.got[i] = static_cast<unsigned char>(data[sum.first + i]);
    return sum;
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
    if (topology_) return;
    topology_ = std::make_unique<Topology>();
    groups_ = make_groups(topology_->nodes(), topology_->caches(), count_);
    if (groups_.empty())
      throw Error(ErrorKind::no_gpu, "no NUMA node has a CPU that this process may use");
    devices_.resize(groups_.size());
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
  std::unique_ptr<Topology> topology_;
  std::vector<CpuGroup> groups_;
  std::vector<std::unique_ptr<HostDevice>> devices_;
  std::atomic<Nanos> retired_delay_ = 0;  // of queue threads that have ended
  Nanos delay_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(std::optional<int> devices) {
  return std::make_unique<HostBackend>(devices);
}

}  // namespace mgpu
