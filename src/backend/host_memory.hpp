// SPDX-License-Identifier: MIT
// Memory of the host by site, and the threads that touch it there: for every backend. Knows no
// buffers and no streams.
#pragma once

#include "backend/backend.hpp"
#include "backend/cpus.hpp"
#include "backend/helpers.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace mgpu {

/// Any thread, but for open(). What is said of a device holds where it is a group of CPUs.
class HostMemory {
 public:
  /// Where the devices are and how strictly that is kept to; again at will while nobody uses this.
  void open(const Machine& machine, Affinity affinity);

  const Topology& topology();  ///< loaded by the first call, which takes milliseconds

  /// The NUMA node of a site; nothing where it is unknown, or the only one there is.
  std::optional<int> node(Site site) const;

  Bytes free(Site site) const;  ///< as Backend::free_memory

  /// Untouched pages, bound to their site's node where it is known, unless Affinity::none.
  /// Error{memory} with need and have.
  std::unique_ptr<Pages> reserve(Site site, Bytes bytes);
  /// The same, touched by the site's helpers, so that they are there. Blocking.
  std::unique_ptr<Pages> allocate(Site site, Bytes bytes);
  /// Moves whole pages to a node.
  void move(const std::byte* data, Bytes bytes, int node);

  /// Threads on the CPUs of the site's node that the process may use, on all where that is not
  /// known or Affinity::none; started by the first call. Error{runtime}.
  Helpers& helpers(Site by);

 private:
  std::vector<NumaNode> nodes_;
  std::vector<std::optional<int>> near_;  // by ordinal
  Affinity affinity_ = Affinity::near;
  std::once_flag loaded_;
  std::optional<Topology> topology_;
  std::mutex mutex_;                                                // of the helpers
  std::map<std::optional<int>, std::unique_ptr<Helpers>> helpers_;  // by node
};

/// As Backend's, by these threads.
void fill(Helpers& by, std::byte* data, Bytes bytes, Pattern pattern, Bytes base);
Check check(Helpers& by, const std::byte* data, Bytes bytes, Pattern pattern, Bytes base);
double chase(Helpers& by, std::byte* data, Bytes bytes, int hops);

}  // namespace mgpu
