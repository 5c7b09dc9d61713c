// SPDX-License-Identifier: MIT
#include "backend/cuda_kernels.hpp"

namespace mgpu {
namespace {

// One access a thread and no loop: on H200 faster than grid-stride loops, unrolled bodies and bulk
// copies.
constexpr unsigned threads = 256;

/// A range as aligned words and the bytes before and behind them.
struct Cut {
  std::uint64_t head, words, ends;  // ends: head and tail together
};

Cut cut(std::uintptr_t address, std::uint64_t bytes, std::uint64_t width) {
  std::uint64_t head = (width - address % width) % width;
  if (head > bytes) head = bytes;
  const std::uint64_t words = (bytes - head) / width;
  return {head, words, bytes - words * width};
}

unsigned blocks(Cut range) {
  return static_cast<unsigned>((range.words + range.ends + threads - 1) / threads);
}

__device__ std::uint64_t global_thread() {
  return static_cast<std::uint64_t>(blockIdx.x) * threads + threadIdx.x;
}

/// The offset of byte `k` of the head and tail together.
__device__ std::uint64_t end_offset(Cut range, std::uint64_t k, std::uint64_t width) {
  return k < range.head ? k : k + range.words * width;
}

// The threads behind the last word copy head and tail, so that a part of any size is one launch.
template <class Word>
__global__ void __launch_bounds__(threads)
    copy_kernel(unsigned char* destination, const unsigned char* source, Cut range) {
  const std::uint64_t i = global_thread();
  if (i < range.words) {
    reinterpret_cast<Word*>(destination + range.head)[i] =
        reinterpret_cast<const Word*>(source + range.head)[i];
  } else if (i - range.words < range.ends) {
    const std::uint64_t offset = end_offset(range, i - range.words, sizeof(Word));
    destination[offset] = source[offset];
  }
}

template <class Word>
cudaError_t launch_copy_of(void* destination, const void* source, std::uint64_t bytes,
                           cudaStream_t stream) {
  Cut range = cut(reinterpret_cast<std::uintptr_t>(destination), bytes, sizeof(Word));
  // This call and not <<<>>>, which is three: a copy of 4 KiB takes 0.2 us less.
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks(range));
  config.blockDim = dim3(threads);
  config.stream = stream;
  void* arguments[] = {&destination, &source, &range};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(copy_kernel<Word>), arguments);
}

/// The eight bytes of the pattern from any offset on.
__device__ std::uint64_t pattern_at(Pattern pattern, std::uint64_t offset) {
  const unsigned shift = static_cast<unsigned>(offset % 8) * 8;
  const std::uint64_t low = pattern_word(pattern, offset / 8);
  return shift == 0 ? low : low >> shift | pattern_word(pattern, offset / 8 + 1) << (64 - shift);
}

__global__ void __launch_bounds__(threads)
    fill_kernel(unsigned char* destination, Cut range, Pattern pattern, std::uint64_t base) {
  const std::uint64_t i = global_thread();
  if (i < range.words) {
    reinterpret_cast<std::uint64_t*>(destination + range.head)[i] =
        pattern_at(pattern, base + range.head + i * 8);
  } else if (i - range.words < range.ends) {
    const std::uint64_t offset = end_offset(range, i - range.words, 8);
    destination[offset] = pattern_byte(pattern, base + offset);
  }
}

/// Bit 7 of each byte of the result is set where that byte of `word` is not zero.
__device__ unsigned long long nonzero_bytes(std::uint64_t word) {
  constexpr std::uint64_t low = 0x7F7F7F7F7F7F7F7Full;
  return (((word & low) + low) | word) & ~low;
}

__global__ void __launch_bounds__(threads)
    check_kernel(const unsigned char* data, Cut range, Pattern pattern, std::uint64_t base,
                 CheckCounts* counts) {
  const std::uint64_t i = global_thread();
  unsigned wrong = 0;
  unsigned long long first = ~0ull;
  if (i < range.words) {
    const std::uint64_t offset = range.head + i * 8;
    const std::uint64_t got = *reinterpret_cast<const std::uint64_t*>(data + offset);
    const unsigned long long differs = nonzero_bytes(got ^ pattern_at(pattern, base + offset));
    wrong = static_cast<unsigned>(__popcll(differs));
    if (wrong > 0)
      first = offset + static_cast<unsigned>(__ffsll(static_cast<long long>(differs)) - 1) / 8;
  } else if (i - range.words < range.ends) {
    const std::uint64_t offset = end_offset(range, i - range.words, 8);
    wrong = data[offset] != pattern_byte(pattern, base + offset);
    if (wrong > 0) first = offset;
  }
  // Blocks without a fault touch no counter; the others add up in shared memory first, so that data
  // wrong throughout is fast too.
  if (!__syncthreads_or(wrong > 0)) return;
  __shared__ unsigned block_wrong;
  __shared__ unsigned long long block_first;
  if (threadIdx.x == 0) {
    block_wrong = 0;
    block_first = ~0ull;
  }
  __syncthreads();
  if (wrong > 0) {
    atomicAdd(&block_wrong, wrong);
    atomicMin(&block_first, first);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&counts->bad, static_cast<unsigned long long>(block_wrong));
    atomicMin(&counts->first, block_first);
  }
}

constexpr std::uint64_t line = 128;  // what one miss brings

__global__ void __launch_bounds__(threads) chain_kernel(unsigned char* chain, std::uint64_t lines) {
  const std::uint64_t i = global_thread();
  if (i >= lines) return;
  *reinterpret_cast<unsigned char**>(chain + i * line) =
      chain + (i + 1 == lines ? 0 : i + 1) * line;
}

__global__ void chase_kernel(const unsigned char* at, int hops, unsigned seat) {
  if (blockIdx.x != seat) return;
  for (int i = 0; i < hops; ++i) at = *reinterpret_cast<const unsigned char* const*>(at);
  if (at == nullptr) __trap();  // no chain holds it; without a use there would be no loads
}

// On the device, not by a copy to the host: that would move managed pages.
__global__ void got_kernel(const unsigned char* data, std::uint64_t bytes, CheckCounts* counts) {
  const std::uint64_t offset = counts->first + threadIdx.x;
  if (counts->bad > 0 && offset < bytes) counts->got[threadIdx.x] = data[offset];
}

}  // namespace

cudaError_t launch_copy(void* destination, const void* source, std::uint64_t bytes, int access,
                        cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const std::uintptr_t apart =
      reinterpret_cast<std::uintptr_t>(destination) - reinterpret_cast<std::uintptr_t>(source);
  if (access >= 16 && apart % 16 == 0)
    return launch_copy_of<uint4>(destination, source, bytes, stream);
  if (access >= 8 && apart % 8 == 0)
    return launch_copy_of<uint2>(destination, source, bytes, stream);
  if (access >= 4 && apart % 4 == 0)
    return launch_copy_of<unsigned>(destination, source, bytes, stream);
  return launch_copy_of<unsigned char>(destination, source, bytes, stream);
}

cudaError_t launch_fill(void* destination, std::uint64_t bytes, Pattern pattern, std::uint64_t base,
                        cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const Cut range = cut(reinterpret_cast<std::uintptr_t>(destination), bytes, 8);
  fill_kernel<<<blocks(range), threads, 0, stream>>>(static_cast<unsigned char*>(destination),
                                                     range, pattern, base);
  return cudaGetLastError();
}

cudaError_t launch_check(const void* data, std::uint64_t bytes, Pattern pattern, std::uint64_t base,
                         CheckCounts* counts, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const auto* from = static_cast<const unsigned char*>(data);
  const Cut range = cut(reinterpret_cast<std::uintptr_t>(data), bytes, 8);
  check_kernel<<<blocks(range), threads, 0, stream>>>(from, range, pattern, base, counts);
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) return status;
  got_kernel<<<1, sizeof(CheckCounts::got), 0, stream>>>(from, bytes, counts);
  return cudaGetLastError();
}

cudaError_t launch_chain(void* chain, std::uint64_t bytes, cudaStream_t stream) {
  const std::uint64_t lines = bytes / line;
  if (lines == 0) return cudaSuccess;
  chain_kernel<<<static_cast<unsigned>((lines + threads - 1) / threads), threads, 0, stream>>>(
      static_cast<unsigned char*>(chain), lines);
  return cudaGetLastError();
}

cudaError_t launch_chase(const void* chain, std::uint64_t bytes, std::uint64_t first, int hops,
                         int seat, int multiprocessors, cudaStream_t stream) {
  const std::uint64_t lines = bytes / line;
  if (lines == 0) return cudaSuccess;
  // A block for each, which the GPU deals out evenly while it is idle; all but one end at once.
  chase_kernel<<<static_cast<unsigned>(multiprocessors), 1, 0, stream>>>(
      static_cast<const unsigned char*>(chain) + first % lines * line, hops,
      static_cast<unsigned>(seat));
  return cudaGetLastError();
}

}  // namespace mgpu
