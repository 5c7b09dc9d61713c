// SPDX-License-Identifier: MIT
// What text and Markdown say in the same words: devices, cases, columns that line up. No colour.
#pragma once

#include "model/result.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

inline constexpr std::size_t text_width = 80;

/// What a word of a vocabulary means.
template <class E>
std::string_view help_of(E value) {
  return std::ranges::find(vocabulary<E>, value, &Word<E>::value)->help;
}

/// "1 sample", "2 samples"; "1 pass", "2 passes".
std::string counted(std::uint64_t n, std::string_view noun);
std::string counted(std::uint64_t n, std::string_view one, std::string_view many);

/// "GPU" or "CPU device".
std::string_view device_noun(BackendKind backend);

/// "GPU-9a1e1234": enough of a UUID for --gpus.
std::string short_uuid(std::string_view uuid);

/// "00000000:17:00.0  GPU-9a1e1234  NVIDIA H200", or the name alone where a device has neither.
std::string identity_of(const Device& device);

/// "2 GPUs, 4 GB managed, prefetch none, owner wait none": what else is as by default is left out.
std::string case_phrase(const Case& what, BackendKind backend);

/// The median over the peak: "42%".
std::string percent(double share);

/// "memory", "NVLink", "PCIe".
std::string_view bottleneck_noun(Bottleneck of);

/// "93% memory"; "-" where the share is not known. A file may lack what it is of.
std::string peak_phrase(const std::optional<double>& share, const std::optional<Bottleneck>& of);

/// What unified memory did in a sample, zeros left out: "per sample 9.14 GB device to device (92%
/// explicit prefetch, 8% access), 1,400 fault groups; 0 -> 1 4.50 GB, 1 -> 0 4.64 GB".
std::string counters_phrase(const Counters& counters);

/// "61% at 1.06 ms, 39% at 1.15 ms".
std::string modes_phrase(const Modes& modes);

/// What is remarkable about a device's state around the samples: "held down by sw-power-cap (690 of
/// 700 W, 71 °C), SM at 1200 of 1980 MHz, 1 other process". Empty where nothing is.
std::string state_phrase(const DeviceResult& device);

/// "whole arrays are prefetched at every launch; costs 398 ms of 400 ms (99.5%): --prefetch once
/// removes it".
std::string cause_phrase(const Cause& cause, double median_ns);

/// "at least 300 GB/s copied, got 310 GB/s: met".
std::string expected_phrase(const Expected& expected);

/// "slower, ratio 1.111 (1.094 .. 1.127), median 2.231 ms against 2.008 ms, tolerance 5%: 8+8
/// rounds in turns".
std::string judgement_phrase(const Judgement& judgement);

/// Text of a saved file with what could steer a terminal replaced.
std::string printable(std::string_view text);

/// Characters, not bytes.
std::size_t columns_of(std::string_view text);

/// The first of `columns` characters, the last of them "…" where something is missing.
std::string shortened(std::string_view text, std::size_t columns);

/// Broken after separators to lines of at most `width`, `indent` spaces before the second and later
/// ones; with its line feed.
std::string wrapped(std::string_view text, std::size_t indent, std::string_view separator = " ",
                    std::size_t width = text_width);

/// Columns of a table: `cells` has one text a row. Text goes left, numbers right.
struct Column {
  std::string header;
  std::vector<std::string> cells;
  enum class Align { right, left } align = Align::right;
  int drop =
      0;  ///< where the table is too wide the highest goes first, of equals the last; 0 stays
};

/// With the header; a table has one space before and two between its columns.
std::size_t width_of(const Column& column);
std::size_t width_of(std::span<const Column> columns);

/// Drops columns until the table fits, as far as it may; the headers of those dropped, in order.
std::vector<std::string> fit(std::vector<Column>& columns, std::size_t width);

std::string padded(std::string_view text, std::size_t width, Column::Align align);

/// Header and rows, each with its line feed, fitted to the width.
std::string table_text(std::vector<Column> columns, std::size_t width = text_width);

}  // namespace mgpu
