// SPDX-License-Identifier: MIT
// Request x Machine -> the cases in order, each runnable or skipped with a reason. Pure.
#pragma once

#include "model/error.hpp"
#include "model/machine.hpp"
#include "model/request.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// Where an array lives, resolved.
struct Place {
  enum class Kind {
    local,   ///< each slice with the device that copies it
    device,  ///< on the device `index`
    host,    ///< each slice on the NUMA node nearest the device that copies it
    node,    ///< on NUMA node `index`
  };
  Kind kind = Kind::local;
  int index = 0;
  bool on_host() const { return kind == Kind::host || kind == Kind::node; }
  bool operator==(const Place&) const = default;
};

/// "local", the ordinal, "host", or "host:N".
std::string to_string(const Place& place);

/// The place of that text; nothing where it is none.
std::optional<Place> place_of(std::string_view text);

/// Where a slice is that `executor` copies.
Site site_of(const Place& place, int executor);

/// One set of transfers with one policy: everything that shapes a result.
struct Case {
  std::vector<int> gpus;  ///< ordinals that execute, in order; slice i goes to gpus[i % size]
  MemoryKind memory = MemoryKind::device;
  MemoryKind source_memory = MemoryKind::device, destination_memory = MemoryKind::device;
  Place from, to;
  bool bidirectional = false;
  int split = 1;
  Bytes size = 0;  ///< of the source array in all, as of the destination
  Bytes align =
      16;  ///< as asked or by default; slices() says what an array too small falls back to
  Engine engine = Engine::kernel;
  int access = 16;
  int batch = 1;
  Prefetch prefetch = Prefetch::none;
  int prefetch_repeats = 1;  ///< how often a prefetch before a copy is submitted
  bool cold = false;
  OwnerWait owner_wait = OwnerWait::none;
  OwnerLock owner_lock = OwnerLock::launch;
  Advice advise = Advice::none;
  std::optional<Runtime> runtime;  ///< as asked; its knobs are in the other fields
  Threads threads = Threads::pool;
  Peer peer = Peer::automatic;
  Wait wait = Wait::block;
  Affinity affinity = Affinity::near;
};

/// Why a case cannot run here, and the kind of error that it is in `copy`.
struct Skip {
  ErrorKind kind = ErrorKind::unavailable;
  std::string reason;
};

struct PlannedCase {
  Case what;
  std::optional<Skip> skip;
  std::vector<Mark> marks;  ///< known before measuring (L2, in-place, prefetch-unsupported)
  std::vector<std::string> warnings;  ///< what an option that was asked for does not do here
};

struct Plan {
  std::vector<PlannedCase> cases;
};

/// Throws Error for what is wrong with the request itself (selectors, sizes); a combination that
/// cannot run becomes a Skip.
Plan make_plan(const Request& request, const Machine& machine);

/// Threads spin only where the CPUs that this process may use outnumber them.
Wait wait_of(const Case& what, const Machine& machine);

/// Wall time of the whole case as far as it can be told beforehand, in ns: from the memory's peak
/// rate, else from 10 GB/s a device.
double estimate_ns(const Case& what, const Machine& machine, const Sampling& sampling);

/// The 16 hex digits over everything that identifies a case: all of Case but `gpus`, and the device
/// names in order (FNV-1a).
std::string case_key(const Case& what, const Machine& machine);

}  // namespace mgpu
