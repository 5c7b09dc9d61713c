// SPDX-License-Identifier: MIT
// Which devices each of several processes takes. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// The part of the devices that is a process' own: of each list of --gpus the part `index` of
/// `count`.
struct Share {
  int index = 0, count = 1;
  bool operator==(const Share&) const = default;
};

/// What one process sees: its host, and its devices by names that hold for all processes there.
struct Seen {
  std::string host;
  std::vector<std::string> devices;
};

/// A share, or why there is none.
struct Dealt {
  Share share;
  std::string refusal;
};

/// By rank: those of a host that see the same devices share them, in order; those that see devices
/// apart from each other's, as where the launcher bound them, take all they see. Refused where they
/// see some of the same. One that has told nothing has no part.
std::vector<Dealt> deal(std::span<const std::optional<Seen>> ranks);

}  // namespace mgpu
