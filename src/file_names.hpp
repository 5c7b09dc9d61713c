// SPDX-License-Identifier: MIT
// Names of files where a launcher started several processes: %r is the rank, %h the host.
#pragma once

#include "model/request.hpp"

#include <string>
#include <string_view>

namespace mgpu {

/// Whether each rank has a file of its own by this name.
bool names_rank(std::string_view path);

/// Rank and host in the place of %r and %h, and % for %%; anything else stays.
std::string expanded(std::string_view path, int rank, std::string_view host);

/// The same for all files that a request writes.
void expand_names(Request& request, int rank, std::string_view host);

}  // namespace mgpu
