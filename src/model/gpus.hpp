// SPDX-License-Identifier: MIT
// `--gpus` lists and places: their notation, and which devices of a machine they name.
#pragma once

#include "model/machine.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// One entry of a list, as written.
struct GpuSelector {
  enum class Kind { all, ordinal, uuid, pci };
  Kind kind = Kind::all;
  int ordinal = 0;
  std::string text;  ///< the UUID prefix or PCI address, as written
  bool operator==(const GpuSelector&) const = default;
};
using GpuList = std::vector<GpuSelector>;

/// "all", "0,2-3", "GPU-9a1e", "0000:17:00". Throws Error{usage} for malformed, empty, repeated,
/// descending and mixed lists. Ordinals above 1023 name nothing: a range is written out as far as
/// the first of them, which resolve_gpus then refuses.
GpuList parse_gpus(std::string_view text, std::string_view option);

/// Ordinals in the order of the list. Throws Error{unavailable} listing what is visible where one
/// is not there or is ambiguous, Error{no_gpu} where the machine has none at all, Error{usage}
/// where two entries name one device, or for a UUID or PCI address on the host backend.
std::vector<int> resolve_gpus(const GpuList& list, const Machine& machine, std::string_view option);

/// Where an array lives: with the device that copies each slice, on one device, on the NUMA node
/// nearest the device that copies each slice, or on one node.
struct PlaceSpec {
  enum class Kind { local, gpu, host, node };
  Kind kind = Kind::local;
  GpuSelector gpu;
  int node = 0;
  bool operator==(const PlaceSpec&) const = default;
};

/// "local", "host", "host:N", or one GPU in any notation of --gpus. Throws Error{usage}.
PlaceSpec parse_place(std::string_view text, std::string_view option);

}  // namespace mgpu
