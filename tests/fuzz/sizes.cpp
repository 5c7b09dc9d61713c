// SPDX-License-Identifier: MIT
// Sizes and numbers as values of options.
#include "model/units.hpp"
#include "oracle.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

using namespace mgpu;

namespace {

constexpr auto highest = std::numeric_limits<std::int64_t>::max();

void print_all(double value, Bytes bytes) {
  format_time(value);
  format_time_short(value);
  format_rate(value);
  format_memory(bytes);
  format_count(bytes);
  to_nanos(value);
}

void check_sizes(std::string_view text) {
  Size size;
  Bytes bytes = 0;
  const bool is_size = taken([&] { size = parse_size(text, "--size"); });
  const bool is_bytes = taken([&] { bytes = parse_bytes(text, "--align"); });
  require(is_bytes == (is_size && !size.per_gpu), "bytes are the sizes without /gpu");
  if (is_bytes) require(bytes == size.bytes, "a size is the same number of bytes");
  double rate = 0;
  if (taken([&] { rate = parse_rate(text, "--expect"); })) {
    require(!is_size, "a rate is no size");
    require(rate >= 1 && std::isfinite(rate), "a rate is at least a byte per second");
    format_rate(rate);
  }
  if (!is_size) return;
  require(size.bytes > 0, "a size is above zero");
  const std::string printed = format_bytes(size.bytes);
  require(parse_bytes(printed, "--align") == size.bytes, "a printed size is read back");
  require(parse_rate(printed + "/s", "--expect") == static_cast<double>(size.bytes),
          "so is one per second");
  require(parse_size(printed + "/gpu", "--size") == Size{size.bytes, true}, "so is one per GPU");
  print_all(static_cast<double>(size.bytes), size.bytes);
}

void check_numbers(std::string_view text) {
  double number = 0;
  std::int64_t count = 0;
  const bool positive = taken([&] { number = parse_number(text, "--seconds"); });
  const bool zero = taken([&] { number = parse_number(text, "--timeout", true); });
  require(!positive || zero, "what is above zero is at least zero");
  if (zero) {
    require(std::isfinite(number) && number >= 0, "a number is finite and not negative");
    require(parse_number(fmt::format("{}", number), "--timeout", true) == number,
            "a printed number is read back");
    print_all(number, 1);
  }
  if (taken([&] { count = parse_count(text, "--samples", -1000, highest); })) {
    require(count >= -1000, "a count is in its range");
    require(parse_count(std::to_string(count), "--samples", -1000, highest) == count,
            "a printed count is read back");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  check_sizes(text);
  check_numbers(text);
  return 0;
}
