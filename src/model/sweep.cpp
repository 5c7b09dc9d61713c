// SPDX-License-Identifier: MIT
#include "model/sweep.hpp"

#include <algorithm>

namespace mgpu {
namespace {

constexpr Bytes four_gb = 4'000'000'000;

// The scenarios of CUDA.jl issue 2615: who copies, in how many slices, arrays of which kind. All
// arrays live on GPU 0.
struct Scenario {
  const char* gpus;
  int split;  // 0: one a GPU
  MemoryKind memory;
};
constexpr Scenario scenarios[] = {
    {"0", 1, MemoryKind::device},   // single kernel
    {"0", 2, MemoryKind::device},   // multiple kernels
    {"1", 2, MemoryKind::device},   // wrong device
    {"0", 2, MemoryKind::managed},  // unified
    {"1", 2, MemoryKind::managed},  // unified, wrong device
    {"all", 0, MemoryKind::managed},
};

// As shipped, without the prefetch, without the owner wait too.
struct Policy {
  std::optional<Prefetch> prefetch;
  std::optional<OwnerWait> owner_wait;
};
constexpr Policy policies[] = {
    {std::nullopt, std::nullopt},
    {Prefetch::none, std::nullopt},
    {Prefetch::none, OwnerWait::none},
};

std::vector<CaseSpec> issue_2615() {
  std::vector<CaseSpec> cases;
  for (const Scenario& scenario : scenarios)
    for (const Policy& policy : policies) {
      CaseSpec made;
      made.gpus = parse_gpus(scenario.gpus, "--gpus");
      made.size = Size{four_gb, false};
      made.memory = scenario.memory;
      made.home = parse_place("0", "--home");
      if (scenario.split > 0) made.split = scenario.split;
      made.align = 4;
      made.access = 4;
      made.runtime = Runtime::cudajl_5_4;
      made.threads = Threads::task;
      made.prefetch = policy.prefetch;
      made.owner_wait = policy.owner_wait;
      cases.push_back(made);
    }
  return cases;
}

std::vector<CaseSpec> scaling(std::size_t devices) {
  std::vector<CaseSpec> cases;
  for (const bool weak : {true, false})
    for (std::size_t n = 1; n <= devices; ++n) {
      CaseSpec made;
      for (std::size_t i = 0; i < n; ++i)
        made.gpus.push_back({GpuSelector::Kind::ordinal, static_cast<int>(i), ""});
      made.size = Size{four_gb, weak};
      cases.push_back(made);
    }
  return cases;
}

}  // namespace

std::vector<CaseSpec> preset_cases(Preset preset, const Machine& machine) {
  switch (preset) {
    case Preset::issue_2615:
      return issue_2615();
    case Preset::scaling:
      return scaling(machine.devices.size());
  }
  return {};
}

std::vector<CaseSpec> product(const std::vector<CaseSpec>& bases, const std::vector<Axis>& axes) {
  std::vector<CaseSpec> cases = bases;
  for (const Axis& axis : axes) {
    std::vector<CaseSpec> next;
    for (const CaseSpec& base : cases) {
      const auto first = static_cast<std::ptrdiff_t>(next.size());
      for (const auto& set : axis) {
        CaseSpec made = base;
        set(made);
        if (std::find(next.begin() + first, next.end(), made) == next.end())
          next.push_back(std::move(made));
      }
    }
    cases = std::move(next);
  }
  // Rows of a preset that an explicit option made alike are one case.
  std::vector<CaseSpec> distinct;
  if (bases.size() < 2) return cases;
  for (CaseSpec& each : cases)
    if (std::ranges::find(distinct, each) == distinct.end()) distinct.push_back(std::move(each));
  return distinct;
}

std::vector<CaseSpec> expand(const Request& request, const Machine& machine) {
  if (request.command == Command::copy) return request.cases;
  const std::vector<CaseSpec> bases =
      request.preset ? preset_cases(*request.preset, machine) : std::vector<CaseSpec>{CaseSpec{}};
  return product(bases, request.axes);
}

}  // namespace mgpu
