// SPDX-License-Identifier: MIT
#include "backend/cpus.hpp"

#include "backend/host_facts.hpp"
#include "model/error.hpp"

#include <climits>
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sched.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace mgpu {
namespace {

constexpr Bytes small_page = 4096, huge_page = Bytes{2} << 20;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

std::vector<int> allowed_of(hwloc_const_cpuset_t set, const std::vector<int>* allowed) {
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu))
    if (!allowed || std::ranges::binary_search(*allowed, cpu)) cpus.push_back(cpu);
  return cpus;
}

/// The bounds of share i of n of `size` things; at least one thing, where shares are more than
/// things.
std::pair<std::size_t, std::size_t> share(std::size_t size, std::size_t n, std::size_t i) {
  const std::size_t first = i * size / n;
  return {first, std::max(first + 1, (i + 1) * size / n)};
}

CpuGroup group_of(std::span<const NumaNode> nodes, std::span<const Cache> caches, std::size_t parts,
                  std::size_t part) {
  CpuGroup group;
  for (const NumaNode& node : nodes) {
    const auto [first, last] = share(node.cpus.size(), parts, part);
    group.cpus.insert(group.cpus.end(), node.cpus.begin() + static_cast<std::ptrdiff_t>(first),
                      node.cpus.begin() + static_cast<std::ptrdiff_t>(last));
    group.nodes.push_back(node.number);
    group.memory_bytes += node.memory_bytes;
  }
  std::ranges::sort(group.cpus);
  for (const Cache& cache : caches)
    if (std::ranges::find_first_of(group.cpus, cache.cpus) != group.cpus.end())
      group.cache_bytes += cache.bytes;
  return group;
}

}  // namespace

std::vector<CpuGroup> make_groups(std::span<const NumaNode> nodes, std::span<const Cache> caches,
                                  std::optional<int> count) {
  if (count && *count < 1)
    throw Error(ErrorKind::usage,
                fmt::format("--host-devices is {}: a machine has at least one device", *count));
  if (nodes.empty()) return {};
  const bool halves = nodes.size() == 1 && nodes.front().cpus.size() > 1;
  const std::size_t n = count ? static_cast<std::size_t>(*count) : halves ? 2 : nodes.size();
  std::vector<CpuGroup> groups;
  if (n < nodes.size()) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto [first, last] = share(nodes.size(), n, i);
      groups.push_back(group_of(nodes.subspan(first, last - first), caches, 1, 0));
    }
    return groups;
  }
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const std::size_t parts = n / nodes.size() + (k < n % nodes.size() ? 1 : 0);
    for (std::size_t i = 0; i < parts; ++i)
      groups.push_back(group_of(nodes.subspan(k, 1), caches, parts, i));
  }
  return groups;
}

Topology::Topology(const char* synthetic) {
  const auto check = [](int result) {
    if (result < 0)
      throw Error(ErrorKind::runtime,
                  fmt::format("hwloc cannot read this machine: {}", std::strerror(errno)));
  };
  check(hwloc_topology_init(&handle_));
  try {
    check(hwloc_topology_set_io_types_filter(handle_, HWLOC_TYPE_FILTER_KEEP_NONE));
    if (synthetic) check(hwloc_topology_set_synthetic(handle_, synthetic));
    check(hwloc_topology_load(handle_));
  } catch (...) {
    hwloc_topology_destroy(handle_);
    throw;
  }
  const std::vector<int>* allowed = synthetic ? nullptr : &allowed_cpus();
  // Nodes of other memory (HBM) may name the CPUs of an earlier node again: theirs is the first
  // one.
  std::set<int> seen;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(handle_, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    auto cpus = allowed_of(node->cpuset, allowed);
    std::erase_if(cpus, [&](int cpu) { return !seen.insert(cpu).second; });
    if (cpus.empty()) continue;
    nodes_.push_back(
        {static_cast<int>(node->os_index), std::move(cpus), node->attr->numanode.local_memory});
  }
  for (const hwloc_obj_type_t level : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    for (hwloc_obj_t cache = nullptr;
         (cache = hwloc_get_next_obj_by_type(handle_, level, cache)) != nullptr;)
      caches_.push_back({cache->attr->cache.size, allowed_of(cache->cpuset, allowed)});
    if (!caches_.empty()) break;
  }
}

Topology::~Topology() {
  hwloc_topology_destroy(handle_);
}

void Topology::bind_memory(const void* address, Bytes bytes, int node, bool move) const {
  const Bitmap set(hwloc_bitmap_alloc());
  if (!set || hwloc_bitmap_only(set.get(), static_cast<unsigned>(node)) != 0) return;
  hwloc_set_area_membind(handle_, address, bytes, set.get(), HWLOC_MEMBIND_BIND,
                         HWLOC_MEMBIND_BYNODESET | (move ? HWLOC_MEMBIND_MIGRATE : 0));
}

void bind_thread(std::span<const int> cpus) {
  thread_local std::vector<int> bound;
  if (std::ranges::equal(bound, cpus)) return;
  bound.assign(cpus.begin(), cpus.end());
  // Not the first thread: what it starts later, processes included, would inherit the few CPUs of
  // one device.
  if (gettid() == getpid()) return;
  if (cpus.empty()) cpus = allowed_cpus();
  // cpu_set_t ends at 1024 CPUs; the call does not.
  constexpr std::size_t bits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<unsigned long> mask(static_cast<std::size_t>(std::ranges::max(cpus)) / bits + 1);
  for (const int cpu : cpus)
    mask[static_cast<std::size_t>(cpu) / bits] |= 1ul << (static_cast<std::size_t>(cpu) % bits);
  sched_setaffinity(0, mask.size() * sizeof mask[0], reinterpret_cast<cpu_set_t*>(mask.data()));
}

Pages::Pages(Bytes bytes) {
  const bool huge = bytes >= huge_page;
  const Bytes unit = huge ? huge_page : small_page;
  const Bytes margin = huge ? huge_page : 0;
  const auto too_much = [&] {
    return Error(ErrorKind::memory,
                 fmt::format("cannot map {} bytes: use a smaller --size", bytes));
  };
  if (bytes > Bytes{1} << 62) throw too_much();  // rounding up would wrap
  bytes_ = std::max<Bytes>(1, (bytes + unit - 1) / unit) * unit;
  void* mapped =
      mmap(nullptr, bytes_ + margin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw too_much();
  auto* first = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const Bytes head = (unit - address % unit) % unit;
  data_ = first + head;
  if (head > 0) munmap(first, head);
  if (margin > head) munmap(data_ + bytes_, margin - head);
  if (huge) madvise(data_, bytes_, MADV_HUGEPAGE);
}

void Pages::lock() const {
  if (mlock(data_, bytes_) == 0) return;
  throw Error(ErrorKind::unavailable,
              fmt::format("cannot lock {} of host memory: {}; raise the limit that `ulimit -l` "
                          "shows, or use --memory pageable",
                          format_memory(bytes_), std::strerror(errno)));
}

Pages::~Pages() {
  munmap(data_, bytes_);
}

}  // namespace mgpu
