// SPDX-License-Identifier: MIT
// Machines that are not there, as NVML and CUDA would describe them. For whoever plans, shows or
// judges a machine.
#pragma once

#include "model/machine.hpp"

namespace mgpu {

Machine one_gpu();            ///< a H200 whose NVLinks end at switches; one NUMA node
Machine nvswitch(int gpus);   ///< H200s, 18 NVLinks each by NVSwitches, two NUMA nodes
Machine nvlink_mesh();        ///< four A100s, four NVLinks between any two
Machine pcie_two_nodes();     ///< four A10s, two on each NUMA node under one PCIe switch
Machine dead_link();          ///< eight GPUs of nvswitch, the fifth of which lost an NVLink
Machine mig_instance();       ///< one instance of a partitioned GPU
Machine nvml_missing();       ///< two GPUs of nvswitch, by CUDA alone
Machine nvml_reversed();      ///< four V100s, CUDA's order against the bus', two with fewer NVLinks
Machine one_without_peers();  ///< two A100s of one NVLink bridge, and a card that is no peer
Machine cpu_groups();         ///< the host backend, two NUMA nodes

}  // namespace mgpu
