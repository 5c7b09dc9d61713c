// SPDX-License-Identifier: MIT
// What every backend must do, as clauses over one, and what these are written with. Knows no
// backend.
#pragma once

#include "backend/backend.hpp"

#include <memory>
#include <span>
#include <vector>

namespace mgpu {

struct Clause {
  const char* name;
  void (*holds)(Backend& backend);
};

/// Each wants a backend that nobody has opened, and fails by Catch2's assertions.
std::span<const Clause> contract();
/// Those about where memory is, and who reaches it there.
std::span<const Clause> memory_contract();

inline constexpr Bytes mebi = Bytes{1} << 20;
inline constexpr Pattern data{1, false}, other_data{2, false}, poison{1, true};

/// The devices that a clause uses, opened: the first two, or the only one.
std::vector<int> open_devices(Backend& backend);
/// Whether all of these devices prefetch.
bool concurrent_managed(Backend& backend, const std::vector<int>& devices);

Site on(int device);    ///< the device itself
Site near(int device);  ///< the host's CPUs near it
/// Who has memory of this kind that is near a device: the device, or these CPUs.
Site home_of(MemoryKind kind, int device);

std::unique_ptr<Buffer> make_buffer(Backend& backend, int device, Bytes bytes,
                                    MemoryKind kind = MemoryKind::device);
std::unique_ptr<Worker> begun_worker(Backend& backend, int device);

Bytes bad_bytes(Backend& backend, Site by, Part part, Pattern pattern, Bytes base);
Bytes bad_bytes(Backend& backend, int device, Part part, Pattern pattern, Bytes base);

/// A poisoned buffer holds what a copy wrote, and poison beside it.
void require_written_alone(Backend& backend, Site by, Part written, Bytes size, Bytes source_base);

}  // namespace mgpu
