// SPDX-License-Identifier: MIT
#include "memory_guard.hpp"

#include "model/schedule.hpp"

#include <fmt/format.h>

#include <map>

namespace mgpu {
namespace {

std::string pool_name(const Site& pool) {
  if (!pool.on_host()) return fmt::format("GPU {}", pool.index);
  return pool == whole_host ? "the host" : to_string(pool);
}

struct Need {
  Bytes bytes = 0, managed = 0;

  void add(Bytes more, Bytes more_managed) {
    // Saturation keeps a wrapped sum from passing the guard.
    bytes = checked_add(bytes, more).value_or(~Bytes{0});
    managed = checked_add(managed, more_managed).value_or(~Bytes{0});
  }
};

}  // namespace

Site pool_of(const Site& site, const Machine& machine) {
  const bool host = machine.backend == BackendKind::host;
  if (site.kind == Site::Kind::node || (site.kind == Site::Kind::device && !host)) return site;
  const auto numa = machine.devices[static_cast<std::size_t>(site.index)].numa;
  return numa ? Site{Site::Kind::node, *numa} : whole_host;
}

void check_memory(const Case& what, const Machine& machine,
                  const std::function<Bytes(const Site&)>& free, bool oversubscribe) {
  const bool host = machine.backend == BackendKind::host;
  std::map<Site, Need> pools;
  for (const MemoryNeed& need : memory_needed(what)) {
    const Site pool = pool_of(need.site, machine);
    pools[pool].add(need.bytes, need.managed);
    // Two nodes that have room may together exceed what the process may use.
    if (pool.on_host() && pool != whole_host) pools[whole_host].add(need.bytes, need.managed);
  }
  const auto usable = [&](const Site& pool) { return free(pool) / 10 * 9; };
  Bytes spilled = 0;
  for (const auto& [pool, need] : pools) {
    const Bytes have = usable(pool);
    if (need.bytes <= have) continue;
    const Bytes over = need.bytes - have;
    if (oversubscribe && !pool.on_host() && over <= need.managed) {
      spilled = checked_add(spilled, over).value_or(~Bytes{0});
      if (spilled <= usable(whole_host)) continue;
    }
    const bool may_spill = need.managed > 0 && !host && !pool.on_host() && !oversubscribe;
    throw Error(
        ErrorKind::memory,
        fmt::format("not enough memory on {}: need {}, have {} (90% of what is free); choose a "
                    "smaller --size{}",
                    pool_name(pool), format_memory(need.bytes), format_memory(have),
                    may_spill ? ", or --oversubscribe" : ""),
        pool.on_host() ? std::nullopt : std::optional(pool.index));
  }
}

}  // namespace mgpu
