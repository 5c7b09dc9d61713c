// SPDX-License-Identifier: MIT
#include "backend/host_copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mgpu {
namespace {

static_assert(std::endian::native == std::endian::little, "patterns are stored as words");

constexpr Bytes page = 4096, line = 64, word = sizeof(std::uint64_t);

#if defined(__SSE2__)
// Four pages in turn: more DRAM rows and prefetch streams are open at once than in one sequential
// walk, which is worth up to a fifth. The stores bypass the caches, so that the destination is not
// read first.
void stream_four_pages(std::byte* destination, const std::byte* source) {
  for (Bytes offset = 0; offset < page; offset += line)
    for (Bytes p = 0; p < 4 * page; p += page)
      for (Bytes i = p + offset; i < p + offset + line; i += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(destination + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
}

void copy_streaming(std::byte* destination, const std::byte* source, Bytes bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(destination);
  const Bytes head = std::min<Bytes>(bytes, (line - address % line) % line);
  std::memcpy(destination, source, head);
  Bytes done = head;
  for (; bytes - done >= 4 * page; done += 4 * page)
    stream_four_pages(destination + done, source + done);
  std::memcpy(destination + done, source + done, bytes - done);
  _mm_sfence();  // whoever is told that the copy is done must see stores that no lock orders
}
#else
void copy_streaming(std::byte* destination, const std::byte* source, Bytes bytes) {
  std::memcpy(destination, source, bytes);
}
#endif

template <class T>
void copy_as(std::byte* destination, const std::byte* source, Bytes bytes) {
  Bytes i = 0;
  for (; bytes - i >= sizeof(T); i += sizeof(T)) {
    T value;
    std::memcpy(&value, source + i, sizeof value);
    std::memcpy(destination + i, &value, sizeof value);
    std::atomic_signal_fence(
        std::memory_order_acq_rel);  // else compilers turn the loop into memcpy
  }
  for (; i < bytes; ++i) destination[i] = source[i];
}

/// Bytes in front of the first whole word of the pattern.
Bytes bytes_to_word(Bytes bytes, Bytes base) {
  return std::min(bytes, (word - base % word) % word);
}

std::byte expected(Pattern pattern, Bytes offset) {
  return static_cast<std::byte>(pattern_byte(pattern, offset));
}

// The words of a pattern, some at a time: with sums, shifts and xors alone they fit vectors, which
// the compiler does not find by itself.
class Words {
 public:
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  static constexpr std::size_t vectors = 4, count = 2 * vectors;
  Words(Pattern pattern, std::uint64_t index) {
    const std::uint64_t flip = pattern.inverted ? ~std::uint64_t{0} : 0;
    flip_ = Vector{flip, flip};
    for (std::size_t i = 0; i < vectors; ++i)
      seeds_[i] =
          Vector{pattern_seed(pattern, index + 2 * i), pattern_seed(pattern, index + 2 * i + 1)};
  }
  const std::array<Vector, vectors>& next() {
    constexpr std::uint64_t step = count * pattern_step;
    for (std::size_t i = 0; i < vectors; ++i) {
      words_[i] = pattern_mix(seeds_[i]) ^ flip_;
      seeds_[i] += Vector{step, step};
    }
    return words_;
  }

 private:
  Vector flip_;
  std::array<Vector, vectors> seeds_, words_;
};

}  // namespace

void copy_by_memcpy(std::byte* destination, const std::byte* source, Bytes bytes, bool streaming) {
  if (streaming)
    copy_streaming(destination, source, bytes);
  else
    std::memcpy(destination, source, bytes);
}

void copy_by_access(std::byte* destination, const std::byte* source, Bytes bytes, int access) {
  switch (access) {
    case 4:
      return copy_as<std::uint32_t>(destination, source, bytes);
    case 8:
      return copy_as<std::uint64_t>(destination, source, bytes);
    default:
      return copy_as<std::array<std::uint64_t, 2>>(destination, source, bytes);
  }
}

void fill_pattern(std::byte* data, Bytes bytes, Pattern pattern, Bytes base) {
  const Bytes head = bytes_to_word(bytes, base);
  const Bytes words = (bytes - head) / word;
  for (Bytes i = 0; i < head; ++i) data[i] = expected(pattern, base + i);
  const std::uint64_t index = (base + head) / word;
  std::byte* to = data + head;
  Words expected_words(pattern, index);
  for (Bytes w = 0; w + Words::count <= words; w += Words::count, to += Words::count * word)
    std::memcpy(to, expected_words.next().data(), Words::count * word);
  for (Bytes w = words / Words::count * Words::count; w < words; ++w, to += word) {
    const std::uint64_t value = pattern_word(pattern, index + w);
    std::memcpy(to, &value, word);
  }
  for (Bytes i = head + words * word; i < bytes; ++i) data[i] = expected(pattern, base + i);
}

Check check_pattern(const std::byte* data, Bytes bytes, Pattern pattern, Bytes base) {
  Check check;
  const auto compare_bytes = [&](Bytes begin, Bytes end) {
    for (Bytes i = begin; i < end; ++i)
      if (data[i] != expected(pattern, base + i) && check.bad++ == 0) check.first = i;
  };
  const Bytes head = bytes_to_word(bytes, base);
  const Bytes whole = head + (bytes - head) / word * word;
  compare_bytes(0, head);
  for (Bytes begin = head; begin < whole;) {
    const Bytes end = std::min(begin + page, whole);
    const std::uint64_t index = (base + begin) / word;
    const Bytes words = (end - begin) / word;
    std::uint64_t difference = 0;
    std::array<Words::Vector, Words::vectors> differences{};
    Words expected_words(pattern, index);
    for (Bytes w = 0; w + Words::count <= words; w += Words::count) {
      std::array<Words::Vector, Words::vectors> found;
      std::memcpy(found.data(), data + begin + w * word, sizeof found);
      const auto& wanted = expected_words.next();
      for (std::size_t i = 0; i < Words::vectors; ++i) differences[i] |= found[i] ^ wanted[i];
    }
    for (const Words::Vector& each : differences) difference |= each[0] | each[1];
    for (Bytes w = words / Words::count * Words::count; w < words; ++w) {
      std::uint64_t value;
      std::memcpy(&value, data + begin + w * word, word);
      difference |= value ^ pattern_word(pattern, index + w);
    }
    if (difference != 0) compare_bytes(begin, end);
    begin = end;
  }
  compare_bytes(whole, bytes);
  if (check.bad > 0)
    std::memcpy(check.got.data(), data + check.first,
                std::min<Bytes>(check.got.size(), bytes - check.first));
  return check;
}

}  // namespace mgpu
