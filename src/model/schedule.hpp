// SPDX-License-Identifier: MIT
// Case -> buffers and steps for each lane. Pure; policies live here and nowhere else.
#pragma once

#include "model/machine.hpp"
#include "model/plan.hpp"

#include <string>
#include <utility>
#include <vector>

namespace mgpu {

/// "device 1", "the host near device 1", "NUMA node 1".
std::string to_string(const Site& site);

/// UVM migrates in blocks of this size, naturally aligned.
inline constexpr Bytes managed_block = Bytes{2} << 20;

/// One allocation. An array is one; but memory that is not managed, with place `local` or `host`,
/// is one for each slice.
struct BufferSpec {
  MemoryKind kind = MemoryKind::device;
  Site site;  ///< where it lives; managed: where it is first touched, of its first slice
  Bytes bytes = 0;
  auto operator<=>(const BufferSpec&) const = default;
};

/// A part of a buffer of the schedule, by number.
struct Range {
  int buffer = 0;
  Bytes offset = 0, bytes = 0;
  bool operator==(const Range&) const = default;
};

enum class StepKind { advise, own, prefetch, copy, release };

struct Step {
  StepKind kind = StepKind::copy;
  Range range;   ///< advise, prefetch: what; own: the buffer; copy: the destination
  Range source;  ///< copy
  OwnerWait wait = OwnerWait::none;    ///< own
  OwnerLock lock = OwnerLock::launch;  ///< own
  Advice advice = Advice::none;        ///< advise
  Site home;                           ///< advise preferred: the place
  bool even_own = false;  ///< own: wait also where this very stream used the array last
};

/// One slice with its thread and stream.
struct Lane {
  int device = 0;  ///< ordinal of the device that executes
  int slice = 0;
  bool reverse = false;  ///< of the arrays that `bidirectional` copies the other way
  Bytes base = 0;  ///< what patterns count from: the slice's offset; reverse: behind all of those
  Range destination, source;
  Site source_site, destination_site;  ///< where each side lives, for first touch and checks
  std::vector<Step> advice;            ///< before anybody touches the memory
  std::vector<Step> setup;             ///< once, before the first pass, stream-ordered
  std::vector<Step>
      sample;  ///< every execution; every sample ends with a synchronise, which is no step
};

/// "slice 3", or "slice 3 of the reverse arrays".
std::string slice_name(const Lane& lane);

struct Schedule {
  std::vector<BufferSpec> buffers;
  std::vector<Lane> lanes;                 ///< slices of zero bytes have none
  std::vector<std::pair<int, int>> peers;  ///< (device that accesses, device that holds), each once
};

/// The bounds of slice i of n: floor(i * size / n) rounded down to the alignment; the last slice
/// ends with the array. An array of less than `align` bytes a slice falls back to 16.
std::pair<Bytes, Bytes> slice_bounds(Bytes size, int n, int i, Bytes align);

Schedule make_schedule(const Case& what);

/// The same buffers, lanes and steps over at most `bytes_per_lane` of each lane's own slice: what a
/// sample costs without its bytes.
Schedule truncated(Schedule schedule, Bytes bytes_per_lane);

/// The most bytes that the schedule can place at each site at any time.
struct MemoryNeed {
  Site site;
  Bytes bytes = 0;
  Bytes managed = 0;  ///< the part of it that may be pushed out to the host
};
std::vector<MemoryNeed> memory_needed(const Case& what);

/// What a lane does, a line each: for --dry-run.
std::vector<std::string> describe_steps(const Schedule& schedule, const Lane& lane);

}  // namespace mgpu
