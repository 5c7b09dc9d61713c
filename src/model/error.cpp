// SPDX-License-Identifier: MIT
#include "model/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mgpu {
namespace {

int weight(int code) {
  using enum ErrorKind;
  constexpr std::array lightest_first{nothing_comparable, no_gpu, usage,   slower,
                                      unavailable,        memory, runtime, timeout,
                                      verification};
  static_assert(lightest_first.size() == vocabulary<ErrorKind>.size());
  if (code == 0) return -1;
  const auto found = std::ranges::find(lightest_first, code, exit_code);
  return static_cast<int>(found - lightest_first.begin());
}

}  // namespace

// Signals are in no row and so weigh more than the last one.
int graver(int a, int b) {
  return weight(a) >= weight(b) ? a : b;
}

Error bad_value(std::string_view option, std::string_view text, std::string_view why) {
  return Error(ErrorKind::usage, fmt::format("{} '{}' {}", option, text, why));
}

}  // namespace mgpu
