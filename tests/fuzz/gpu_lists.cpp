// SPDX-License-Identifier: MIT
// Lists of GPUs and places, and what they name on three machines. The first line is a list, what
// follows a place.
#include "model/gpus.hpp"
#include "oracle.hpp"

#include <set>
#include <string>
#include <vector>

using namespace mgpu;

namespace {

/// GPUs 0 and 1 share a beginning of their UUIDs, 0 and 2 bus and device.
Machine three_gpus() {
  struct Identity {
    const char *uuid, *pci;
  };
  Machine machine;
  for (const auto& [uuid, pci] : {Identity{"GPU-9a1e0000-1111", "00000000:17:00.0"},
                                  Identity{"GPU-9a1f0000-2222", "00000000:3B:00.0"},
                                  Identity{"GPU-77000000-3333", "00000001:17:00.0"}}) {
    Device& gpu = machine.devices.emplace_back();
    gpu.ordinal = static_cast<int>(machine.devices.size()) - 1;
    gpu.name = "NVIDIA H200";
    gpu.uuid = uuid;
    gpu.pci = pci;
  }
  machine.environment["CUDA_VISIBLE_DEVICES"] = "2,0,1";
  return machine;
}

/// More CPU devices than a list can name.
Machine many_cpus() {
  Machine machine;
  machine.backend = BackendKind::host;
  machine.devices.resize(1030);
  for (int i = 0; i < 1030; ++i) machine.devices[static_cast<std::size_t>(i)].ordinal = i;
  return machine;
}

void check_resolved(const GpuList& list, const Machine& machine) {
  std::vector<int> ordinals;
  const bool found = taken([&] { ordinals = resolve_gpus(list, machine, "--gpus"); },
                           {ErrorKind::usage, ErrorKind::unavailable, ErrorKind::no_gpu});
  if (!found) return;
  require(!ordinals.empty(), "a list names a device");
  require(std::set(ordinals.begin(), ordinals.end()).size() == ordinals.size(),
          "each device is named once");
  for (const int ordinal : ordinals)
    require(ordinal >= 0 && static_cast<std::size_t>(ordinal) < machine.devices.size(),
            "each ordinal is a device of the machine");
}

void check_everywhere(const GpuList& list) {
  static const Machine gpus = three_gpus(), cpus = many_cpus(), none;
  check_resolved(list, gpus);
  check_resolved(list, cpus);
  check_resolved(list, none);
}

void check_list(std::string_view text) {
  GpuList list;
  if (!taken([&] { list = parse_gpus(text, "--gpus"); })) return;
  require(!list.empty(), "a list has an entry");
  require(list.size() <= text.size() + 1025, "a range costs no memory");
  check_everywhere(list);
}

void check_place(std::string_view text) {
  PlaceSpec place;
  if (!taken([&] { place = parse_place(text, "--from"); })) return;
  if (place.kind == PlaceSpec::Kind::node) require(place.node >= 0, "a NUMA node has a number");
  if (place.kind != PlaceSpec::Kind::gpu) return;
  require(parse_gpus(text, "--gpus") == GpuList{place.gpu}, "a GPU as a place is a list of one");
  check_everywhere({place.gpu});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  const std::size_t end = text.find('\n');
  check_list(text.substr(0, end));
  check_place(end == text.npos ? text : text.substr(end + 1));
  return 0;
}
