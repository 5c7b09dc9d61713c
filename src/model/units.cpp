// SPDX-License-Identifier: MIT
#include "model/units.hpp"

#include "model/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace mgpu {
namespace {

struct Unit {
  std::string_view name;
  Bytes bytes;
};

constexpr std::array units{
    Unit{"TiB", Bytes{1} << 40},
    Unit{"TB", 1'000'000'000'000},
    Unit{"GiB", Bytes{1} << 30},
    Unit{"GB", 1'000'000'000},
    Unit{"MiB", Bytes{1} << 20},
    Unit{"MB", 1'000'000},
    Unit{"KiB", Bytes{1} << 10},
    Unit{"kB", 1'000},
    Unit{"B", 1},
};

// Not <cctype>: what a digit or a letter is must not depend on the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

/// "64MiB" from "64MiB/gpu", and whether it was there.
bool take_per_gpu(std::string_view& text) {
  constexpr std::string_view suffix = "/gpu";
  if (text.size() < suffix.size() || !same_word(text.substr(text.size() - suffix.size()), suffix))
    return false;
  text.remove_suffix(suffix.size());
  return true;
}

/// 0.<fraction> times the unit, rounded down. Long multiplication, so
/// exact for any number of digits.
Bytes fraction_of(std::string_view fraction, Bytes unit) {
  Bytes carry = 0;
  for (auto digit = fraction.rbegin(); digit != fraction.rend(); ++digit)
    carry = (static_cast<Bytes>(*digit - '0') * unit + carry) / 10;
  return carry;
}

/// A number and a unit behind it. `text` is what messages show.
Bytes parse_quantity(std::string_view quantity, std::string_view text, std::string_view option) {
  std::string_view rest = quantity;
  const auto integer = take_digits(rest);
  std::string_view fraction;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
  }
  if (integer.empty() && fraction.empty())
    throw bad_value(option, text,
                    "is no size: write a number above zero and a unit, such as 4GB or 1.5GiB");
  const auto number = quantity.substr(0, quantity.size() - rest.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));

  if (rest.size() == 1 && std::string_view("kmgt").find(lower(rest[0])) != std::string_view::npos) {
    const char prefix = lower(rest[0]) == 'k' ? 'k' : static_cast<char>(lower(rest[0]) - 'a' + 'A');
    const char binary = prefix == 'k' ? 'K' : prefix;
    throw bad_value(option, text,
                    fmt::format("is ambiguous: {0}{1}B or {0}{2}iB?", number, prefix, binary));
  }
  const auto unit = std::ranges::find_if(
      units, [&](const Unit& row) { return same_word(row.name, rest.empty() ? "B" : rest); });
  if (unit == units.end())
    throw bad_value(
        option, text,
        fmt::format("has the unknown unit '{}': write B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
                    rest));

  Bytes whole = 0;
  const auto parsed = std::from_chars(integer.data(), integer.data() + integer.size(), whole);
  const Bytes part = fraction_of(fraction, unit->bytes);
  if (unit->bytes == 1 && fraction.find_first_not_of('0') != std::string_view::npos)
    throw bad_value(option, text, "is not a whole number of bytes: leave out the decimals");
  const auto product = parsed.ec == std::errc::result_out_of_range
                           ? std::nullopt
                           : checked_multiply(whole, unit->bytes);
  const auto bytes = product ? checked_add(*product, part) : std::nullopt;
  if (!bytes)
    throw bad_value(option, text,
                    fmt::format("overflows 64 bits: write at most {} bytes",
                                std::numeric_limits<Bytes>::max()));
  if (*bytes == 0) throw bad_value(option, text, "must be > 0: write a size such as 1GiB");
  return *bytes;
}

/// bytes over the unit in full; binary and decimal fractions of whole bytes all end.
std::string exact_quotient(Bytes bytes, Bytes unit) {
  std::string text = std::to_string(bytes / unit);
  Bytes rest = bytes % unit;
  if (rest > 0) text += '.';
  for (; rest > 0; rest %= unit) {
    rest *= 10;
    text += static_cast<char>('0' + rest / unit);
  }
  return text;
}

/// Three significant digits of value / step^i with the first unit that needs no fourth one.
std::string scaled(double value, double step, std::span<const std::string_view> names) {
  std::size_t i = 0;
  for (; value >= 999.5 && i + 1 < names.size(); ++i) value /= step;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, names[i]);
}

/// Scaled, rounded and scaled back in double, half to even: as Julia's round(x; sigdigits = 3),
/// whose ties it must share.
double round_to_three(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int digits = 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double scale = std::pow(10.0, std::abs(digits));
  return digits >= 0 ? std::nearbyint(value * scale) / scale
                     : std::nearbyint(value / scale) * scale;
}

}  // namespace

Size parse_size(std::string_view text, std::string_view option) {
  std::string_view quantity = text;
  const bool per_gpu = take_per_gpu(quantity);
  return {parse_quantity(quantity, text, option), per_gpu};
}

Bytes parse_bytes(std::string_view text, std::string_view option) {
  std::string_view quantity = text;
  if (take_per_gpu(quantity))
    throw bad_value(option, text, fmt::format("takes no /gpu: write a size such as {}", quantity));
  return parse_quantity(quantity, text, option);
}

double parse_rate(std::string_view text, std::string_view option) {
  constexpr std::string_view suffix = "/s";
  if (text.size() < suffix.size() || !same_word(text.substr(text.size() - suffix.size()), suffix))
    throw bad_value(option, text, "is no rate: write bytes per second, such as 300GB/s");
  std::string_view bytes = text.substr(0, text.size() - suffix.size());
  while (bytes.ends_with(' ')) bytes.remove_suffix(1);
  return static_cast<double>(parse_quantity(bytes, text, option));
}

double parse_number(std::string_view text, std::string_view option, bool zero_allowed) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool valid = error == std::errc() && stop == end && std::isfinite(value) &&
                     !std::signbit(value) && (value > 0 || zero_allowed);
  if (!valid)
    throw bad_value(option, text,
                    zero_allowed ? "must be a finite number, at least 0, such as 2.5"
                                 : "must be a finite number above 0, such as 2.5");
  return value;
}

std::int64_t parse_count(std::string_view text, std::string_view option, std::int64_t low,
                         std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < low || value > high)
    throw bad_value(option, text,
                    high == std::numeric_limits<std::int64_t>::max()
                        ? fmt::format("must be a whole number, at least {}", low)
                        : fmt::format("must be a whole number from {} to {}", low, high));
  return value;
}

std::optional<Bytes> checked_multiply(Bytes a, Bytes b) {
  if (a != 0 && b > std::numeric_limits<Bytes>::max() / a) return std::nullopt;
  return a * b;
}

std::optional<Bytes> checked_add(Bytes a, Bytes b) {
  if (b > std::numeric_limits<Bytes>::max() - a) return std::nullopt;
  return a + b;
}

std::string format_time(double ns) {
  if (ns < 1e3) return fmt::format("{:.3f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3f} \u03bcs", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string format_time_short(double ns) {
  std::string text = format_time(round_to_three(ns));
  const auto space = text.find(' ');
  const auto last = text.find_last_not_of('0', space - 1);
  const auto kept = text[last] == '.' ? last : last + 1;
  return text.erase(kept, space - kept);
}

std::string format_rate(double bytes_per_s) {
  constexpr std::array<std::string_view, 7> names{"B/s",  "kB/s", "MB/s", "GB/s",
                                                  "TB/s", "PB/s", "EB/s"};
  return scaled(bytes_per_s, 1000, names);
}

std::string format_bytes(Bytes bytes) {
  std::string shortest;
  for (const auto& unit : units) {
    if (bytes < unit.bytes && unit.bytes > 1) continue;
    auto text = fmt::format("{} {}", exact_quotient(bytes, unit.bytes), unit.name);
    if (shortest.empty() || text.size() < shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

std::string format_memory(Bytes bytes) {
  constexpr std::array<std::string_view, 6> names{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return scaled(static_cast<double>(bytes) / 1024, 1024, names);
}

std::string format_count(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

}  // namespace mgpu
