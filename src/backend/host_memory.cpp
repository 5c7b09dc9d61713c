// SPDX-License-Identifier: MIT
#include "backend/host_memory.hpp"

#include "backend/host_copy.hpp"
#include "backend/host_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <system_error>
#include <utility>

namespace mgpu {
namespace {

constexpr Bytes smallest_page = 4096;

std::string place_name(Site site, std::optional<int> node) {
  if (!site.on_host()) return fmt::format("device {}", site.index);
  return node ? fmt::format("NUMA node {}", *node) : std::string("the host");
}

}  // namespace

void HostMemory::open(const Machine& machine, Affinity affinity) {
  nodes_ = machine.host.nodes;
  near_.clear();
  for (const Device& device : machine.devices) near_.push_back(device.numa);
  if (affinity != affinity_) helpers_.clear();
  affinity_ = affinity;
}

const Topology& HostMemory::topology() {
  std::call_once(loaded_, [this] { topology_.emplace(); });
  return *topology_;
}

std::optional<int> HostMemory::node(Site site) const {
  if (nodes_.size() < 2 || site.index < 0) return std::nullopt;
  std::optional<int> number;
  if (site.kind == Site::Kind::node)
    number = site.index;
  else if (const auto ordinal = static_cast<std::size_t>(site.index); ordinal < near_.size())
    number = near_[ordinal];
  const bool known =
      number && std::ranges::find(nodes_, *number, &NumaNode::number) != nodes_.end();
  return known ? number : std::nullopt;
}

Bytes HostMemory::free(Site site) const {
  const auto where = node(site);
  return where ? available_on_node(*where) : available_memory();
}

std::unique_ptr<Pages> HostMemory::reserve(Site site, Bytes bytes) {
  const auto where = node(site);
  // Linux gives more than it has and kills whoever then touches it.
  if (const Bytes have = free(site); bytes > have) {
    const auto device = site.on_host() ? std::nullopt : std::optional(site.index);
    throw Error(ErrorKind::memory,
                fmt::format("not enough memory on {}: need {}, have {}; use a smaller --size",
                            place_name(site, where), format_memory(bytes), format_memory(have)),
                device);
  }
  auto pages = std::make_unique<Pages>(bytes);
  if (where && affinity_ == Affinity::near)
    topology().bind_memory(pages->data(), pages->size(), *where, false);
  return pages;
}

std::unique_ptr<Pages> HostMemory::allocate(Site site, Bytes bytes) {
  auto pages = reserve(site, bytes);
  volatile std::byte* const data = pages->data();
  const auto touch = [data](Bytes offset, Bytes size) {
    for (Bytes i = offset; i < offset + size; i += smallest_page) data[i] = std::byte{0};
  };
  helpers(site).run(pages->size(), std::nullopt, std::cref(touch));
  return pages;
}

void HostMemory::move(const std::byte* data, Bytes bytes, int node) {
  topology().bind_memory(data, bytes, node, true);
}

Helpers& HostMemory::helpers(Site by) {
  const auto where = affinity_ == Affinity::near ? node(by) : std::nullopt;
  const std::lock_guard lock(mutex_);
  auto& helpers = helpers_[where];
  if (helpers) return *helpers;
  std::vector<int> cpus;
  if (where) cpus = std::ranges::find(nodes_, *where, &NumaNode::number)->cpus;
  if (cpus.empty()) cpus = allowed_cpus();
  try {
    helpers = std::make_unique<Helpers>(cpus, affinity_);
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::runtime,
                fmt::format("cannot start {} threads: {}", cpus.size(), error.what()));
  }
  return *helpers;
}

void fill(Helpers& by, std::byte* data, Bytes bytes, Pattern pattern, Bytes base) {
  const auto block = [&](Bytes offset, Bytes size) {
    fill_pattern(data + offset, size, pattern, base + offset);
  };
  by.run(bytes, std::nullopt, std::cref(block));
}

Check check(Helpers& by, const std::byte* data, Bytes bytes, Pattern pattern, Bytes base) {
  std::mutex mutex;
  Check sum;
  const auto block = [&](Bytes offset, Bytes size) {
    const Check found = check_pattern(data + offset, size, pattern, base + offset);
    if (found.bad == 0) return;
    const std::lock_guard lock(mutex);
    sum.first = sum.bad == 0 ? offset + found.first : std::min(sum.first, offset + found.first);
    sum.bad += found.bad;
  };
  by.run(bytes, std::nullopt, std::cref(block));
  for (Bytes i = 0; sum.bad > 0 && i < std::min<Bytes>(sum.got.size(), bytes - sum.first); ++i)
    sum.got[i] = static_cast<unsigned char>(data[sum.first + i]);
  return sum;
}

double chase(Helpers& by, std::byte* data, Bytes bytes, int hops) {
  constexpr Bytes line = 256;  // beyond what fetching a neighbour as well brings
  const Bytes lines = std::bit_floor(bytes / line);
  // A linear congruence whose period is the modulus: no two hops are the same distance apart, which
  // prefetchers would notice.
  constexpr Bytes multiplier = 6364136223846793005, increment = 1442695040888963407;
  static_assert(multiplier % 8 == 5 && increment % 2 == 1);
  double ns = 0;
  const auto follow = [&](Bytes, Bytes) {
    const auto at = [&](Bytes i) { return reinterpret_cast<std::byte**>(data + i * line); };
    for (Bytes i = 0; i < lines; ++i) *at(i) = data + (i * multiplier + increment) % lines * line;
    const std::byte* const volatile* place = at(0);
    const Nanos start = steady_now();
    for (int i = 0; i < hops; ++i)
      place = reinterpret_cast<const std::byte* const volatile*>(*place);
    const Nanos end = steady_now();
    // The last load has to be waited for as well.
    ns = static_cast<double>(place == nullptr ? 0 : end - start) / hops;
  };
  by.run(1, std::nullopt, std::cref(follow));
  return ns;
}

}  // namespace mgpu
