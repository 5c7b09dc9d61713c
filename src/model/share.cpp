// SPDX-License-Identifier: MIT
#include "model/share.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace mgpu {

std::vector<Dealt> deal(std::span<const std::optional<Seen>> ranks) {
  std::map<std::string, std::vector<std::size_t>> hosts;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank]) hosts[ranks[rank]->host].push_back(rank);
  std::vector<Dealt> dealt(ranks.size());
  for (const auto& [host, here] : hosts) {
    std::set<std::string> together;
    std::size_t sum = 0;
    for (const std::size_t rank : here) {
      const std::vector<std::string>& devices = ranks[rank]->devices;
      together.insert(devices.begin(), devices.end());
      sum += devices.size();
    }
    if (together.size() == sum) continue;  // apart, or one rank
    const bool same = std::ranges::all_of(
        here, [&](std::size_t rank) { return ranks[rank]->devices.size() == together.size(); });
    for (std::size_t i = 0; i < here.size(); ++i)
      if (same)
        dealt[here[i]].share = {static_cast<int>(i), static_cast<int>(here.size())};
      else
        dealt[here[i]].refusal = fmt::format(
            "ranks {} on {} see different devices, and some of the same: let all of a "
            "node see the same, or each its own",
            fmt::join(here, ", "), host);
  }
  return dealt;
}

}  // namespace mgpu
