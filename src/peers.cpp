// SPDX-License-Identifier: MIT
#include "peers.hpp"

#include <fmt/format.h>

namespace mgpu {
namespace {

constexpr Bytes probe_bytes = 1 << 20;
constexpr Pattern written{1, false}, poison{1, true};

}  // namespace

std::optional<Error> Peers::enable(int device, int peer) {
  const std::pair pair{device, peer};
  const auto found = known_.find(pair);
  if (found != known_.end()) return found->second;
  std::optional<Error> failure;
  try {
    backend_.connect(device, peer);
    failure = probe(device, peer);
  } catch (const Error& error) {
    if (error.kind != ErrorKind::unavailable) throw;
    failure = error;
  }
  if (failure) backend_.disconnect(device, peer);
  return known_[pair] = failure;
}

void Peers::disable(int device, int peer) {
  if (known_.erase({device, peer}) > 0) backend_.disconnect(device, peer);
}

std::optional<Error> Peers::probe(int device, int peer) {
  const Site near = on_device(device), far = on_device(peer);
  const auto here = backend_.allocate({MemoryKind::device, near, probe_bytes});
  const auto there = backend_.allocate({MemoryKind::device, far, probe_bytes});
  const auto worker = backend_.open_worker(device);
  const auto crosses = [&](Site from, Part source, Site to, Part destination, const char* how) {
    backend_.fill(from, source, written, 0);
    backend_.fill(to, destination, poison, 0);
    worker->begin(backend_.now());
    worker->copy(destination, source, Engine::kernel, 16);
    worker->sync();
    const Check found = backend_.check(to, destination, written, 0);
    if (found.bad == 0) return std::optional<Error>();
    return std::optional<Error>(
        Error(ErrorKind::verification,
              fmt::format("peer access {} -> {} is granted, but what GPU {} {} is wrong ({} of {} "
                          "bytes): check IOMMU and ACS settings; --peer off goes through the host",
                          device, peer, device, how, found.bad, probe_bytes),
              device));
  };
  const Part local{here.get(), 0, probe_bytes}, remote{there.get(), 0, probe_bytes};
  if (auto failure = crosses(far, remote, near, local, "reads")) return failure;
  return crosses(near, local, far, remote, "writes");
}

}  // namespace mgpu
