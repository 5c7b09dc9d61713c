// SPDX-License-Identifier: MIT
// What the bytes of a copy go through, and how fast that could be. Knows nothing measured.
#pragma once

#include "model/schedule.hpp"

#include <optional>
#include <span>

namespace mgpu {

/// Hardware whose peak limits a copy.
enum class Bottleneck { memory, nvlink, pcie };
template <>
inline constexpr auto vocabulary<Bottleneck> = std::to_array<Word<Bottleneck>>({
    {Bottleneck::memory, "memory", "clock and bus width of a device's memory"},
    {Bottleneck::nvlink, "nvlink", "the active NVLinks on the way"},
    {Bottleneck::pcie, "pcie", "PCI Express of the best generation and width on the way"},
});

/// The least time that the bytes of some lanes can take together, and what makes it so.
struct Limit {
  double ns = 0;
  Bottleneck by = Bottleneck::memory;
};

/// Every lane's bytes over the peak of each memory and each link that they pass, reads and writes
/// of one memory added, the directions of a link apart; the longest of these. Nothing where one of
/// these peaks is unknown, or where there are no bytes.
std::optional<Limit> limit_of(const Case& what, std::span<const Lane> lanes,
                              const Machine& machine);

/// Whether a lane's bytes cross a link between devices or to the host, once managed pages are where
/// the case leaves them. On the host backend nothing does.
bool crosses_link(const Case& what, const Lane& lane, const Machine& machine);

/// `copied` where any slice crosses a link, else `moved`.
Basis basis_of(const Case& what, const Machine& machine);

}  // namespace mgpu
