// SPDX-License-Identifier: MIT
#include "file_names.hpp"

namespace mgpu {

bool names_rank(std::string_view path) {
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (path[i] != '%') continue;
    if (path[++i] == 'r') return true;
  }
  return false;
}

std::string expanded(std::string_view path, int rank, std::string_view host) {
  std::string name;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char next = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (next == 'r')
      name += std::to_string(rank);
    else if (next == 'h')
      name += host;
    else if (next == '%')
      name += '%';
    else {
      name += path[i];
      continue;
    }
    ++i;
  }
  return name;
}

void expand_names(Request& request, int rank, std::string_view host) {
  const auto expand = [&](std::string& path) { path = expanded(path, rank, host); };
  for (OutputSpec& spec : request.outputs) expand(spec.path);
  for (std::string* path : {&request.timeline, &request.resume, &request.exclude_file})
    expand(*path);
}

}  // namespace mgpu
