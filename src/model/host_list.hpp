// SPDX-License-Identifier: MIT
// Names of hosts: their order, and lists of them as Slurm writes them. Looks no host up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// Numbers within names by their value: node2 before node10.
struct HostOrder {
  bool operator()(std::string_view a, std::string_view b) const;
};

/// "login1,node[003,017-019]": each name once, in order; empty ones are left out. What a name ends
/// in is folded if it is a number, those of as many digits together.
std::string host_list(std::vector<std::string> names);

}  // namespace mgpu
