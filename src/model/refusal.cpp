// SPDX-License-Identifier: MIT
#include "model/refusal.hpp"

#include "model/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace mgpu {
namespace {

constexpr int max_lanes_per_device = 64;

const Device& device_of(const Machine& machine, int ordinal) {
  return machine.devices[static_cast<std::size_t>(ordinal)];
}

template <class... T>
Skip usage(fmt::format_string<T...> format, T&&... values) {
  return {ErrorKind::usage, fmt::format(format, std::forward<T>(values)...)};
}

template <class... T>
Skip unavailable(fmt::format_string<T...> format, T&&... values) {
  return {ErrorKind::unavailable, fmt::format(format, std::forward<T>(values)...)};
}

// What contradicts itself, whatever the machine.
std::optional<Skip> contradiction(const Case& what, const CaseSpec& spec,
                                  const Sampling& sampling) {
  const bool managed = what.memory == MemoryKind::managed;
  const auto lanes = static_cast<std::size_t>(what.split) * (what.bidirectional ? 2 : 1);
  if ((lanes + what.gpus.size() - 1) / what.gpus.size() > max_lanes_per_device)
    return usage("--split {}: that is {} slices a device, at most {} are possible", what.split,
                 (lanes + what.gpus.size() - 1) / what.gpus.size(), max_lanes_per_device);
  if (!managed && spec.prefetch.value_or(Prefetch::none) != Prefetch::none)
    return usage("--prefetch {} is for managed memory: add --unified", name(*spec.prefetch));
  if (!managed && (what.cold || what.advise != Advice::none))
    return usage("{} is for managed memory: add --unified", what.cold ? "--cold" : "--advise");
  if (!managed && sampling.counters)
    return usage("--counters counts what managed memory does: add --unified");
  if ((what.memory == MemoryKind::pinned || what.memory == MemoryKind::pageable) &&
      !what.from.on_host() && !what.to.on_host())
    return usage("--memory {} is on the host, and no place given is: use --from host or --to host",
                 name(what.memory));
  const std::vector<Lane> all = make_schedule(what).lanes;
  if (what.bidirectional && std::ranges::all_of(all, [](const Lane& lane) {
        return lane.source_site == lane.destination_site;
      }))
    return usage(
        "--bidirectional copies between two places, and both arrays are at one: use --from and "
        "--to");
  return std::nullopt;
}

// The tables of what a GPU reaches, for one slice: cudaMalloc's memory and the host's.
class Reach {
 public:
  Reach(const Case& what, const Lane& lane, const Machine& machine)
      : what_(what), lane_(lane), machine_(machine), x_(lane.device) {}

  std::optional<Skip> refused() const {
    return what_.engine == Engine::memcpy ? by_copy_engine() : by_kernel();
  }

 private:
  std::optional<Skip> by_copy_engine() const {
    const Site &from = lane_.source_site, &to = lane_.destination_site;
    if (from.on_host() && to.on_host())
      return usage(
          "--engine memcpy within the host would run on a CPU, not on GPU {}: use --engine "
          "kernel",
          x_);
    if (from.on_host() || to.on_host()) {
      const Site& device = from.on_host() ? to : from;
      if (device.is(x_)) return std::nullopt;
      return usage(
          "--engine memcpy between the host and GPU {} is not a copy of GPU {}: use --gpus "
          "{}, or --engine kernel",
          device.index, x_, device.index);
    }
    if (from.is(x_) || to.is(x_)) return std::nullopt;
    if (from == to)
      return usage(
          "--engine memcpy within GPU {} would run on GPU {} itself, not on GPU {}: use "
          "--engine kernel, or --gpus {}",
          from.index, from.index, x_, from.index);
    return usage(
        "--engine memcpy from GPU {} to GPU {} would run on one of them, not on GPU {}: use "
        "--engine kernel, or --gpus {}",
        from.index, to.index, x_, to.index);
  }

  std::optional<Skip> by_kernel() const {
    const bool pageable = what_.source_memory == MemoryKind::pageable ||
                          what_.destination_memory == MemoryKind::pageable;
    if (pageable && !device_of(machine_, x_).pageable_access)
      return unavailable(
          "a kernel on GPU {} cannot reach pageable memory "
          "(pageableMemoryAccess=0): use --engine memcpy, or --memory pinned",
          x_);
    for (const Site& site : {lane_.source_site, lane_.destination_site}) {
      if (site.on_host() || site.is(x_)) continue;
      const bool pair = lane_.source_site != lane_.destination_site;
      const std::string instead =
          pair ? "--engine memcpy" : "--engine memcpy between GPUs, --home local or --unified";
      if (what_.peer == Peer::off)
        return unavailable("--peer off: a kernel on GPU {} needs peer access to GPU {}: use {}", x_,
                           site.index, instead);
      const auto& peers = device_of(machine_, x_).peers;
      const auto peer = static_cast<std::size_t>(site.index);
      if (peer >= peers.size() || !peers[peer])
        return unavailable("GPU {} cannot access the memory of GPU {} (no peer access): use {}", x_,
                           site.index, instead);
    }
    return std::nullopt;
  }

  const Case& what_;
  const Lane& lane_;
  const Machine& machine_;
  const int x_;
};

std::optional<Skip> refused_managed(const Case& what, const CaseSpec& spec,
                                    const Sampling& sampling, const Machine& machine) {
  std::set<int> used(what.gpus.begin(), what.gpus.end());
  for (const Place& place : {what.from, what.to})
    if (place.kind == Place::Kind::device) used.insert(place.index);
  const std::string_view noun = machine.backend == BackendKind::host ? "device" : "GPU";
  for (const int gpu : used) {
    const Device& device = device_of(machine, gpu);
    if (!device.managed)
      return unavailable("unified memory is not supported on {} {}: use --memory device", noun,
                         gpu);
    if (device.concurrent_managed) continue;
    if (spec.prefetch && *spec.prefetch != Prefetch::none)
      return unavailable(
          "--prefetch {}: {} {} has concurrentManagedAccess=0, so it cannot prefetch: "
          "use --no-prefetch",
          name(*spec.prefetch), noun, gpu);
    if (what.advise != Advice::none)
      return unavailable(
          "--advise {}: {} {} has concurrentManagedAccess=0, so it takes no advice: "
          "leave it out",
          name(what.advise), noun, gpu);
    if (sampling.oversubscribe)
      return unavailable(
          "--oversubscribe: {} {} has concurrentManagedAccess=0, so its managed "
          "memory cannot exceed it",
          noun, gpu);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Skip> refusal(const Case& what, const CaseSpec& spec, const Request& request,
                            const Machine& machine) {
  if (auto skip = contradiction(what, spec, request.sampling)) return skip;
  const bool host = machine.backend == BackendKind::host;
  if (host && what.advise != Advice::none)
    return unavailable("--advise {}: the host backend takes no advice", name(what.advise));
  if (what.gpus.size() > 1 &&
      std::ranges::any_of(what.gpus, [&](int g) { return device_of(machine, g).mig; }))
    return unavailable(
        "--gpus names several MIG instances, and a process can use one MIG instance: name one of "
        "them");
  if (what.memory == MemoryKind::managed)
    return refused_managed(what, spec, request.sampling, machine);
  if (host) return std::nullopt;
  for (const Lane& lane : make_schedule(what).lanes)
    if (auto skip = Reach(what, lane, machine).refused()) return skip;
  return std::nullopt;
}

}  // namespace mgpu
