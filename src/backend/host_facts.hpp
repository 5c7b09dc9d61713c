// SPDX-License-Identifier: MIT
// What the kernel tells of the host and of this process: CPUs, memory, limits, waiting. For every
// backend; no hwloc.
#pragma once

#include "model/machine.hpp"
#include "model/units.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// "0-3,8" as the kernel writes lists of CPUs and nodes, ascending; reading ends at what is
/// malformed.
std::vector<int> parse_cpu_list(std::string_view text);

/// CPUs the process might use when this was first called: threads bound since then do not narrow
/// it.
const std::vector<int>& allowed_cpus();

/// NUMA nodes with memory, also those without CPUs, by sysfs; where it has none, all CPUs that are
/// allowed are node 0. An only node has all memory of the host.
std::vector<NumaNode> numa_nodes(const std::string& sysfs = "/sys");

/// All of Host, from /proc, /sys and the environment; no hwloc.
Host host_facts();
/// CUDA_* variables that are set.
std::map<std::string, std::string> cuda_environment();

struct NearCpus {
  std::vector<int> all;   ///< allowed or not; empty: unknown
  std::vector<int> cpus;  ///< those that this process may use
  std::optional<int> numa;
};
/// Of a PCI device, "00000000:17:00.0", by sysfs alone: hwloc's I/O discovery is slow and may wake
/// the driver.
NearCpus near_cpus(std::string_view pci, const std::string& sysfs = "/sys");

/// Directories that may limit the memory of this process, innermost first, by /proc/self/cgroup and
/// /proc/self/mountinfo.
std::vector<std::string> memory_cgroups(std::string_view cgroup, std::string_view mountinfo);

/// The text of a cgroup's memory.max, memory.current and memory.stat, or of version 1's
/// limit_in_bytes and usage_in_bytes.
struct CgroupMemory {
  std::string limit, usage, stat;
};
/// MemAvailable, cut by each cgroup's limit less its use. Inactive page cache is no use: it makes
/// way before anyone is killed.
Bytes available_memory(std::string_view meminfo, std::span<const CgroupMemory> cgroups);
/// The same of this process, now.
Bytes available_memory();
/// Free and page cache, by the text of /sys/devices/system/node/nodeN/meminfo.
Bytes node_memory(std::string_view meminfo);
/// The least of both: what can be had now on one NUMA node; of an only node, that of the process.
Bytes available_on_node(int node);

/// What a launcher (Open MPI's, one that speaks PMI, srun) says of this process.
struct Launched {
  std::optional<int> rank, ranks;
  bool several = false;  ///< it was started with others; a batch script of several tasks is one
  bool pty = false;      ///< stdout may look like a terminal, and is the launcher's
};
Launched launched();

/// The second field of a schedstat file: time spent runnable without a CPU.
std::optional<Nanos> parse_schedstat(std::string_view text);
/// The name of threads that copy. Those that wait for them hand their CPU on again and again, and
/// are runnable all the while: that delays nobody.
inline constexpr const char* queue_thread_name = "copy";
/// That time of the living threads of this name; nullopt where the kernel does not tell.
std::optional<Nanos> run_queue_delay();
/// That of the calling thread; 0 where the kernel does not tell.
Nanos thread_queue_delay();

}  // namespace mgpu
