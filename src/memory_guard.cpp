// SPDX-License-Identifier: MIT
#include "memory_guard.hpp"

#include "model/schedule.hpp"

#include <fmt/format.h>

#include <map>

namespace mgpu {

void check_memory(const Case& what, const Machine& machine, const std::function<Bytes(int)>& free,
                  bool oversubscribe) {
  // CPU devices of one NUMA node share its memory.
  const bool host = machine.backend == BackendKind::host;
  struct Need {
    Bytes bytes = 0, managed = 0;
    int device = 0;
  };
  std::map<int, Need> places;
  for (const MemoryNeed& need : memory_needed(what)) {
    const int place = host ? machine.devices[static_cast<std::size_t>(need.device)].numa.value_or(0)
                           : need.device;
    Need& sum = places[place];
    sum.bytes = checked_add(sum.bytes, need.bytes).value_or(~Bytes{0});
    sum.managed = checked_add(sum.managed, need.managed).value_or(~Bytes{0});
    sum.device = need.device;
  }
  const auto usable = [&](int device) { return free(device) / 10 * 9; };
  Bytes spilled = 0;
  for (const auto& [place, need] : places) {
    const Bytes have = usable(need.device);
    if (need.bytes <= have) continue;
    const Bytes over = need.bytes - have;
    if (oversubscribe && !host && over <= need.managed) {
      spilled = checked_add(spilled, over).value_or(~Bytes{0});
      if (spilled <= usable(-1)) continue;
    }
    throw Error(
        ErrorKind::memory,
        fmt::format("not enough memory on {} {}: need {}, have {} (90% of what is free); choose a "
                    "smaller --size{}",
                    host ? "NUMA node" : "GPU", place, format_memory(need.bytes),
                    format_memory(have),
                    need.managed > 0 && !host && !oversubscribe ? ", or --oversubscribe" : ""),
        need.device);
  }
}

}  // namespace mgpu
