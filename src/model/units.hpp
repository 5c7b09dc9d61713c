// SPDX-License-Identifier: MIT
// Bytes, times and rates: parsing what users write, printing what they read, sums that cannot wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mgpu {

using Bytes = std::uint64_t;
using Nanos = std::int64_t;  ///< a clock reading or a duration in whole nanoseconds

/// Seconds as nanoseconds, at most a century of them.
constexpr Nanos to_nanos(double seconds) {
  constexpr double century = 3.2e9;
  return static_cast<Nanos>((seconds < century ? seconds : century) * 1e9);
}

/// A size as written: the number, and whether `/gpu` follows it.
struct Size {
  Bytes bytes = 0;
  bool per_gpu = false;
  bool operator==(const Size&) const = default;
};

/// "4GB", "1.5GiB", "64 MiB/gpu", "1000003". Throws Error{usage} naming `option` for anything else,
/// zero and overflow included.
Size parse_size(std::string_view text, std::string_view option);

/// As parse_size, without `/gpu`.
Bytes parse_bytes(std::string_view text, std::string_view option);

/// As parse_bytes with "/s" behind it, in bytes per second: "2.5TB/s".
double parse_rate(std::string_view text, std::string_view option);

/// A finite number above zero (`--seconds`), or at least zero where `zero_allowed`. Throws
/// Error{usage}.
double parse_number(std::string_view text, std::string_view option, bool zero_allowed = false);

/// A whole number in [low, high]. Throws Error{usage}.
std::int64_t parse_count(std::string_view text, std::string_view option, std::int64_t low,
                         std::int64_t high);

/// nullopt where the product or sum does not fit in 64 bits.
std::optional<Bytes> checked_multiply(Bytes a, Bytes b);
std::optional<Bytes> checked_add(Bytes a, Bytes b);

/// As BenchmarkTools prints times: "1.763 ms"; three decimals, no promotion after rounding, "μs"
/// with the Greek letter.
std::string format_time(double ns);
/// As its histogram's footer: three significant digits, trailing zeros dropped ("2.89 ms", "1 ns").
std::string format_time_short(double ns);
/// Three significant digits, decimal units: "4.54 TB/s".
std::string format_rate(double bytes_per_s);
/// The shortest exact form, decimal or binary: "4 GB", "1 GiB", "1.5 GiB", "1000003 B".
std::string format_bytes(Bytes bytes);
/// Binary units with three significant digits, for memory: "139 GiB".
std::string format_memory(Bytes bytes);
/// Thousands separated by commas: "4,000,000,000".
std::string format_count(std::uint64_t n);

}  // namespace mgpu
