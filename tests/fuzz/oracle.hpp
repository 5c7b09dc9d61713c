// SPDX-License-Identifier: MIT
// What must hold for any input of a fuzz target. A breach ends the process, which libFuzzer reports
// with the input; so does every exception that is not named here.
#pragma once

#include "model/error.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace mgpu {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process where `held` is false.
inline void require(bool held, std::string_view promise) {
  if (held) return;
  std::fprintf(stderr, "broken promise: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

/// Whether `call` takes its input; it may refuse it by an Error of these kinds with a message.
template <class Call>
bool taken(Call call, std::initializer_list<ErrorKind> refusals = {ErrorKind::usage}) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    if (std::ranges::find(refusals, error.kind) == refusals.end()) throw;
    require(!std::string_view(error.what()).empty(), "a refusal says why");
    return false;
  }
}

}  // namespace mgpu
