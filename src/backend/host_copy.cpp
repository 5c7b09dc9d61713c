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
  for (Bytes w = 0; w < words; ++w, to += word) {
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
    std::uint64_t difference = 0;
    for (Bytes w = 0; w < (end - begin) / word; ++w) {
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
