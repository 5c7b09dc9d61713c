// SPDX-License-Identifier: MIT
// What a machine has. Filled by a backend without making a context; absent values are nullopt,
// never zero.
#pragma once

#include "model/evidence.hpp"
#include "model/links.hpp"
#include "model/units.hpp"
#include "model/words.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mgpu {

/// Where memory is, and who touches it there: a device, or CPUs of the host.
struct Site {
  enum class Kind {
    device,  ///< the device `index`
    near,    ///< the NUMA node nearest the device `index`; any CPU where that is not known
    node,    ///< NUMA node `index`
  };
  Kind kind = Kind::device;
  int index = 0;
  bool on_host() const { return kind != Kind::device; }
  bool is(int device) const { return kind == Kind::device && index == device; }
  auto operator<=>(const Site&) const = default;
};

constexpr Site on_device(int ordinal) {
  return {Site::Kind::device, ordinal};
}

/// The host as a whole, whichever its nodes.
inline constexpr Site whole_host{Site::Kind::node, -1};

struct NumaNode {
  int number = 0;
  std::vector<int> cpus;  ///< that this process may use
  Bytes memory_bytes = 0;
  bool operator==(const NumaNode&) const = default;
};

/// One that executes copies: a GPU, or a group of CPUs.
struct Device {
  int ordinal = 0;   ///< as the CUDA runtime numbers it; also its place in Machine::devices
  std::string name;  ///< "NVIDIA H200", "2 CPUs of NUMA node 0"
  std::string uuid;  ///< "GPU-9a1e..." or "MIG-..."; empty on the host backend
  std::string pci;   ///< "00000000:17:00.0"; empty on the host backend
  std::optional<Bytes> memory_bytes;
  std::optional<Bytes> l2_bytes;
  std::optional<double> memory_peak;  ///< bytes per second, read and write together
  std::string capability;             ///< "9.0", of compute; empty: unknown
  std::string compute_mode;  ///< "default", "exclusive_process", "prohibited"; empty: unknown
  std::optional<int> sms;
  std::optional<bool> ecc;
  std::optional<int> numa;
  std::vector<int> near_cpus;  ///< those near it, allowed or not; empty: unknown
  std::vector<int> cpus;       ///< of these, what this process may use
  bool mig = false;
  bool managed = true;             ///< managed memory can be allocated
  bool concurrent_managed = true;  ///< prefetch, advice and concurrent access work
  bool pageable_access = false;    ///< kernels may read and write the host's pageable memory
  bool host_page_tables = false;   ///< they do so through the host's page tables
  bool host_access = false;        ///< CPUs reach managed memory where it is, without moving pages
  std::vector<bool> peers;         ///< by ordinal: claims to reach that device's memory
  Pcie pcie;
  NvLinks nvlinks;
  std::optional<Telemetry> state;  ///< when it was described; only a topology has it
  bool operator==(const Device&) const = default;
};

struct Driver {
  std::string version;  ///< of the kernel driver, "580.159.04"
  std::string cuda;     ///< highest CUDA version of the driver, "13.0"
  std::string runtime;  ///< CUDA version that mgpu was built with
  std::string nvml;     ///< "available", or why not
  bool operator==(const Driver&) const = default;
};

struct Host {
  std::string name;
  std::string kernel;
  int cpus = 0;
  std::vector<int> allowed_cpus;
  std::vector<NumaNode> nodes;  ///< NUMA nodes with memory, ascending
  std::optional<Bytes> memory_bytes;
  std::optional<int> rank, ranks;
  std::map<std::string, std::string> slurm;  ///< SLURM_JOB_ID and its like that are set
  bool operator==(const Host&) const = default;
};

struct Machine {
  BackendKind backend = BackendKind::cuda;
  Host host;
  Driver driver;
  std::vector<Device> devices;
  std::vector<Link> links;  ///< between every ordered pair of devices, and each GPU and the host
  std::map<std::string, std::string> environment;  ///< CUDA_* variables that are set
  bool operator==(const Machine&) const = default;
};

}  // namespace mgpu
