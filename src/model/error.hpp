// SPDX-License-Identifier: MIT
// The one exception type and the one table from its kind to the exit code.
#pragma once

#include "model/words.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mgpu {

enum class ErrorKind {
  runtime,
  usage,
  no_gpu,
  unavailable,
  memory,
  verification,
  timeout,
  slower,
  nothing_comparable
};
template <>
inline constexpr auto vocabulary<ErrorKind> = std::to_array<Word<ErrorKind>>({
    {ErrorKind::runtime, "runtime", "runtime failure, also output that cannot be written"},
    {ErrorKind::usage, "usage", "bad usage, or an input file that cannot be read or is not ours"},
    {ErrorKind::no_gpu, "no_gpu", "no usable GPU or driver"},
    {ErrorKind::unavailable, "unavailable", "a requested GPU or feature is not available"},
    {ErrorKind::memory, "memory", "not enough memory"},
    {ErrorKind::verification, "verification", "verification failed"},
    {ErrorKind::timeout, "timeout", "timed out"},
    {ErrorKind::slower, "slower", "slower than wanted"},
    {ErrorKind::nothing_comparable, "nothing_comparable", "nothing comparable"},
});

/// The exit code of an error of this kind (1 to 9, in the order of the table).
constexpr int exit_code(ErrorKind kind) {
  return static_cast<int>(kind) + 1;
}

/// Of two codes that apply, the one that the process ends with: a signal's (128 + n), then 6, 7, 1,
/// 5, 4, 8, then 2, 3, 9, then 0. Of two signals the first.
int graver(int a, int b);

/// `what()` says what happened, on which device or option, and what to do next; lower case, no
/// trailing stop.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind what_kind, const std::string& message, std::optional<int> ordinal = std::nullopt)
      : std::runtime_error(message), kind(what_kind), device(ordinal) {}

  ErrorKind kind;
  std::optional<int> device;  ///< ordinal of the device it happened on
  bool lost = false;          ///< no further device call of this process can succeed
};

/// What is thrown for the value of an option: Error{usage}, "--size '4XB' <why>"; `why` ends with
/// what to write instead.
Error bad_value(std::string_view option, std::string_view text, std::string_view why);

}  // namespace mgpu
