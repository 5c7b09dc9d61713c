// SPDX-License-Identifier: MIT
// The position-dependent pattern that fills and checks use. Plain C++17: device code includes it
// too.
#pragma once

#include <cstdint>

namespace mgpu {

/// What a byte range must hold. The byte at offset g of the array is byte g % 8 of word(g / 8),
/// little-endian. `inverted` flips every bit: a destination poisoned with the inverse of what is
/// expected differs in every byte.
struct Pattern {
  std::uint64_t key = 0;  ///< below 2^20; each differs in every word from the others
  bool inverted = false;
};

/// From one word to the next the seed grows by this, so that a loop needs no product.
constexpr std::uint64_t pattern_step = 0x9E3779B97F4A7C15ull;

constexpr std::uint64_t pattern_seed(Pattern pattern, std::uint64_t index) {
  return (index + 1 + (pattern.key << 44)) * pattern_step;
}

/// Never zero for a plain pattern: an odd multiplier and x ^ x >> n are bijections of the 64-bit
/// words.
/// `Word` is one word or a vector of them.
template <class Word>
constexpr Word pattern_mix(Word x) {
  x ^= x >> 32;
  x ^= x >> 29;  // a key reaches the low bits too
  return x;
}

constexpr std::uint64_t pattern_word(Pattern pattern, std::uint64_t index) {
  const std::uint64_t x = pattern_mix(pattern_seed(pattern, index));
  return pattern.inverted ? ~x : x;
}

constexpr unsigned char pattern_byte(Pattern pattern, std::uint64_t offset) {
  return static_cast<unsigned char>(pattern_word(pattern, offset / 8) >> (offset % 8 * 8));
}

}  // namespace mgpu
