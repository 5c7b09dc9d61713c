// SPDX-License-Identifier: MIT
// CPUs, NUMA nodes and caches; binding of threads and memory to them. The only user of hwloc;
// copies nothing.
#pragma once

#include "model/machine.hpp"
#include "model/units.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

struct hwloc_topology;

namespace mgpu {

struct Cache {
  Bytes bytes = 0;
  std::vector<int> cpus;
};
struct CpuGroup {
  std::vector<int> cpus;
  std::vector<int> nodes;  ///< one, but where there are fewer groups than nodes
  Bytes memory_bytes = 0;  ///< of these nodes
  Bytes cache_bytes = 0;   ///< of all caches that its CPUs reach
};
/// `count` groups, or one a node, or two where the only node has CPUs for them; each node has some.
/// More groups than CPUs share CPUs. Error{usage} below 1.
std::vector<CpuGroup> make_groups(std::span<const NumaNode> nodes, std::span<const Cache> caches,
                                  std::optional<int> count);

/// hwloc's view without I/O. Loading takes milliseconds; afterwards usable by many threads at once.
class Topology {
 public:
  explicit Topology(
      const char* synthetic = nullptr);  ///< of this machine, or of a description as hwloc has them
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  const std::vector<NumaNode>& nodes() const {
    return nodes_;
  }  ///< those with CPUs; each CPU in one
  const std::vector<Cache>& caches() const { return caches_; }  ///< of the last level
  /// Binds whole pages to a node; `move`: those there are moved. A refusal is no error: first touch
  /// decides then.
  void bind_memory(const void* address, Bytes bytes, int node, bool move) const;

 private:
  hwloc_topology* handle_ = nullptr;
  std::vector<NumaNode> nodes_;
  std::vector<Cache> caches_;
};

/// Binds the calling thread, unless it is the process' first; to no CPUs: takes that back. Cheap
/// where it is so already. A refusal is no error.
void bind_thread(std::span<const int> cpus);

/// Untouched pages of zeros; huge and 2 MiB aligned from 2 MiB on. Error{memory} where they cannot
/// be mapped.
class Pages {
 public:
  explicit Pages(Bytes bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return data_; }
  Bytes size() const { return bytes_; }
  void lock() const;  ///< keeps them where they are. Error{unavailable} where the process may not

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace mgpu
