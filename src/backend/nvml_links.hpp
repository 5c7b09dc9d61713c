// SPDX-License-Identifier: MIT
// What NVML answers about PCIe, NVLinks and pairs of GPUs, and what that makes of a Machine. Throws
// nothing.
#pragma once

#include "model/machine.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

class NvmlLibrary;
struct NvmlDevice;

/// NVML's own numbers; absent where it has no answer.
struct NvmlTopology {
  struct NvLink {
    bool active = false;
    std::optional<int> remote;  ///< nvmlIntNvLinkDeviceType_t: 0 a GPU, 2 a switch
    std::string pci;            ///< of the remote end, "00000000:17:00.0"; empty: unknown
  };
  struct Gpu {
    Pcie pcie;
    std::vector<NvLink> links;
    std::optional<int> mb_per_s;  ///< of one link, one way
  };
  struct Pair {
    std::optional<int> ancestor;                      ///< nvmlGpuTopologyLevel_t
    std::optional<int> read, write, atomics, nvlink;  ///< nvmlGpuP2PStatus_t
  };
  std::vector<Gpu> gpus;
  std::vector<Pair> pairs;  ///< row by row, the diagonal included and meaningless

  const Pair& pair(std::size_t from, std::size_t to) const {
    return pairs[from * gpus.size() + to];
  }
};

/// Of these devices, null where NVML does not know one. Blocking.
NvmlTopology ask_topology(const NvmlLibrary& library, std::span<NvmlDevice* const> devices);

/// Fills Machine::links, and pcie and nvlinks of its devices, which `told` has in the same order;
/// where it is empty, by what the devices alone tell. What NVML allows and CUDA refuses (peers) is
/// not claimed.
void join_topology(Machine& machine, const NvmlTopology& told);

/// "chipset not supported", ... of nvmlGpuP2PStatus_t.
std::string_view p2p_status_words(int status);

}  // namespace mgpu
