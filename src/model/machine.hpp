// SPDX-License-Identifier: MIT
// What a machine has. Filled by a backend without making a context; absent values are nullopt,
// never zero.
#pragma once

#include "model/units.hpp"
#include "model/words.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mgpu {

/// One that executes copies: a GPU, or a group of CPUs.
struct Device {
  int ordinal = 0;   ///< as the CUDA runtime numbers it; also its place in Machine::devices
  std::string name;  ///< "NVIDIA H200", "2 CPUs of NUMA node 0"
  std::string uuid;  ///< "GPU-9a1e..." or "MIG-..."; empty on the host backend
  std::string pci;   ///< "00000000:17:00.0"; empty on the host backend
  std::optional<Bytes> memory_bytes;
  std::optional<Bytes> l2_bytes;
  std::optional<double> memory_peak;  ///< bytes per second, read and write together
  std::optional<int> numa;
  std::vector<int> cpus;  ///< those near it that this process may use; empty: unknown
  bool mig = false;
  bool managed = true;             ///< managed memory can be allocated
  bool concurrent_managed = true;  ///< prefetch, advice and concurrent access work
  std::vector<bool> peers;         ///< by ordinal: claims to reach that device's memory
};

struct Driver {
  std::string version;  ///< of the kernel driver, "580.159.04"
  std::string cuda;     ///< highest CUDA version of the driver, "13.0"
  std::string runtime;  ///< CUDA version that mgpu was built with
  std::string nvml;     ///< "available", or why not
};

struct Host {
  std::string name;
  std::string kernel;
  int cpus = 0;
  std::vector<int> allowed_cpus;
  int numa = 1;  ///< number of NUMA nodes
  std::optional<Bytes> memory_bytes;
  std::optional<int> rank, ranks;
  std::map<std::string, std::string> slurm;  ///< SLURM_JOB_ID and its like that are set
};

struct Machine {
  BackendKind backend = BackendKind::cuda;
  Host host;
  Driver driver;
  std::vector<Device> devices;
  std::map<std::string, std::string> environment;  ///< CUDA_* variables that are set
};

}  // namespace mgpu
