// SPDX-License-Identifier: MIT
// Tables of a topology that have a row and a column for each device: kinds, rates, claims, what was
// measured. Internal to the room.
#pragma once

#include "model/machine.hpp"
#include "report/phrases.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// "0-3,8" of ascending numbers.
std::string ranges_of(const std::vector<int>& numbers);

/// "GPU 0", "host".
std::string end_name(int end, BackendKind backend);

/// Where a measured kind stands among all: unknown ones last.
std::size_t rank_of(std::string_view what);

/// "478", "25.2": bytes per second as GB/s.
std::string gigabytes_per_s(double bytes_per_s);

/// A heading without stop; a table, or none where the heading says all; and lines below it.
struct Matrix {
  std::string heading;
  std::vector<Column> columns;
  std::vector<std::string> notes;
};

/// All that say something of a machine's links, in the order to show them.
std::vector<Matrix> topology_matrices(const Machine& machine);

}  // namespace mgpu
