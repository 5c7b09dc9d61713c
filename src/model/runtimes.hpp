// SPDX-License-Identifier: MIT
// What runtimes do implicitly around a launch, as rows of knobs. CUDA.jl's rows follow its sources
// by version; see docs/architecture.md for the rule they come from.
#pragma once

#include "model/words.hpp"

namespace mgpu {

struct RuntimeKnobs {
  Runtime runtime;
  Prefetch prefetch;     ///< of managed arrays, to the launching device
  int prefetch_repeats;  ///< through KernelAbstractions each launch converts its arguments twice
  bool prefetch_needs_one_gpu;  ///< only where exactly one device is visible to the process
  OwnerWait owner_wait;
  OwnerLock owner_lock;
  Threads threads;  ///< a task has its own stream
  bool waits_own;   ///< memory of another device waits for its owner at every launch, whoever it is
};

inline constexpr auto runtime_knobs = std::to_array<RuntimeKnobs>({
    {Runtime::plain, Prefetch::none, 1, false, OwnerWait::none, OwnerLock::launch, Threads::pool,
     false},
    {Runtime::cudajl_5_1, Prefetch::array, 1, false, OwnerWait::none, OwnerLock::launch,
     Threads::task, false},
    {Runtime::cudajl_5_4, Prefetch::array, 2, false, OwnerWait::host, OwnerLock::record,
     Threads::task, true},
    {Runtime::cudajl_5_7, Prefetch::array, 2, true, OwnerWait::host, OwnerLock::record,
     Threads::task, true},
    {Runtime::cudajl_5_7_nosync, Prefetch::array, 2, true, OwnerWait::none, OwnerLock::record,
     Threads::task, false},
    {Runtime::cudajl_6_3, Prefetch::array, 1, true, OwnerWait::host, OwnerLock::launch,
     Threads::task, true},
});

constexpr const RuntimeKnobs& knobs_of(Runtime runtime) {
  return runtime_knobs[static_cast<std::size_t>(runtime)];
}
static_assert([] {
  for (const auto& row : runtime_knobs)
    if (knobs_of(row.runtime).runtime != row.runtime) return false;
  return runtime_knobs.size() == vocabulary<Runtime>.size();
}());

}  // namespace mgpu
