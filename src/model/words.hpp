// SPDX-License-Identifier: MIT
// The closed vocabularies. Each is one table; options, help, JSON, completions and tests read it,
// so a new value is a row.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace mgpu {

template <class E>
struct Word {
  E value;
  std::string_view name;
  std::string_view help;
};

/// The rows of vocabulary `E`, in the order they are shown.
template <class E>
inline constexpr auto vocabulary = nullptr;

enum class BackendKind { cuda, host };
template <>
inline constexpr auto vocabulary<BackendKind> = std::to_array<Word<BackendKind>>({
    {BackendKind::cuda, "cuda", "NVIDIA GPUs"},
    {BackendKind::host, "host", "groups of CPUs as devices"},
});

enum class MemoryKind { device, managed, pinned, pageable };
template <>
inline constexpr auto vocabulary<MemoryKind> = std::to_array<Word<MemoryKind>>({
    {MemoryKind::device, "device", "memory of the device (cudaMalloc)"},
    {MemoryKind::managed, "managed", "unified memory that moves to whoever touches it"},
    {MemoryKind::pinned, "pinned", "memory of the host that is locked and mapped for all devices"},
    {MemoryKind::pageable, "pageable", "memory of the host as malloc gives it"},
});

enum class Engine { kernel, memcpy };
template <>
inline constexpr auto vocabulary<Engine> = std::to_array<Word<Engine>>({
    {Engine::kernel, "kernel", "a copy kernel run by the devices of --gpus"},
    {Engine::memcpy, "memcpy", "cudaMemcpyAsync on their streams"},
});

enum class Prefetch { none, once, slice, array };
template <>
inline constexpr auto vocabulary<Prefetch> = std::to_array<Word<Prefetch>>({
    {Prefetch::none, "none", "never"},
    {Prefetch::once, "once", "each slice to its device, before the first pass"},
    {Prefetch::slice, "slice", "each slice to its device before every copy"},
    {Prefetch::array, "array", "both whole arrays to the copying device before every copy"},
});

enum class OwnerWait { none, host, event };
template <>
inline constexpr auto vocabulary<OwnerWait> = std::to_array<Word<OwnerWait>>({
    {OwnerWait::none, "none", "streams use an array without regard to each other"},
    {OwnerWait::host, "host", "the host blocks until the array's last stream has finished"},
    {OwnerWait::event, "event", "the new stream waits for the array's last stream"},
});

/// How long an array's owner record is held: until the copy is submitted, or for the exchange
/// alone.
enum class OwnerLock { launch, record };
template <>
inline constexpr auto vocabulary<OwnerLock> = std::to_array<Word<OwnerLock>>({
    {OwnerLock::launch, "launch", "held until the copy is submitted"},
    {OwnerLock::record, "record", "held for the exchange alone"},
});

enum class Advice { none, preferred, accessed_by, read_mostly };
template <>
inline constexpr auto vocabulary<Advice> = std::to_array<Word<Advice>>({
    {Advice::none, "none", "no advice"},
    {Advice::preferred, "preferred", "the slice's place as preferred location"},
    {Advice::accessed_by, "accessed-by", "mapped by the copying device"},
    {Advice::read_mostly, "read-mostly", "duplicated on read, for the source alone"},
});

enum class Peer { automatic, on, off };
template <>
inline constexpr auto vocabulary<Peer> = std::to_array<Word<Peer>>({
    {Peer::automatic, "auto", "enabled where it works"},
    {Peer::on, "on", "must work"},
    {Peer::off, "off", "never enabled"},
});

/// Whose implicit acts around a launch are made; the acts themselves are in model/runtimes.hpp.
enum class Runtime { plain, cudajl_5_1, cudajl_5_4, cudajl_5_7, cudajl_5_7_nosync, cudajl_6_3 };
template <>
inline constexpr auto vocabulary<Runtime> = std::to_array<Word<Runtime>>({
    {Runtime::plain, "plain", "CUDA C++ that never prefetches nor waits"},
    {Runtime::cudajl_5_1, "cudajl-5.1",
     "CUDA.jl 5.1 to 5.3: whole arrays prefetched at every launch"},
    {Runtime::cudajl_5_4, "cudajl-5.4", "CUDA.jl 5.4 to 5.6: that twice, and a wait for the owner"},
    {Runtime::cudajl_5_7, "cudajl-5.7",
     "CUDA.jl 5.7 to 6.2: prefetched only with one visible device"},
    {Runtime::cudajl_5_7_nosync, "cudajl-5.7-nosync", "the same without the owner wait"},
    {Runtime::cudajl_6_3, "cudajl-6.3",
     "CUDA.jl 6.3: the owner's record is held through the launch"},
});

enum class Threads { pool, spawn, task, single };
template <>
inline constexpr auto vocabulary<Threads> = std::to_array<Word<Threads>>({
    {Threads::pool, "pool", "persistent threads, one a slice"},
    {Threads::spawn, "spawn", "threads started inside the sample"},
    {Threads::task, "task", "threads and streams made inside the sample"},
    {Threads::single, "single", "one thread submits to all"},
});

enum class Verify { ends, every, none };
template <>
inline constexpr auto vocabulary<Verify> = std::to_array<Word<Verify>>({
    {Verify::ends, "ends", "after warm-up and after the last sample"},
    {Verify::every, "every", "around every sample, outside the clock"},
    {Verify::none, "none", "not at all"},
});

/// Where threads run and host memory is touched.
enum class Affinity { near, none };
template <>
inline constexpr auto vocabulary<Affinity> = std::to_array<Word<Affinity>>({
    {Affinity::near, "near", "on the CPUs near the device that copies"},
    {Affinity::none, "none", "where the kernel puts them"},
});

/// What a rate counts: payload where a link is crossed, else all that memory reads and writes.
enum class Basis { copied, moved };
template <>
inline constexpr auto vocabulary<Basis> = std::to_array<Word<Basis>>({
    {Basis::copied, "copied", "bytes of payload"},
    {Basis::moved, "moved", "bytes read and written"},
});

/// How threads wait for a release or a stream.
enum class Wait { spin, block };
template <>
inline constexpr auto vocabulary<Wait> = std::to_array<Word<Wait>>({
    {Wait::spin, "spin", "threads poll"},
    {Wait::block, "block", "threads sleep"},
});

enum class HistogramScale { automatic, linear, log };
template <>
inline constexpr auto vocabulary<HistogramScale> = std::to_array<Word<HistogramScale>>({
    {HistogramScale::automatic, "auto", "as BenchmarkTools decides"},
    {HistogramScale::linear, "linear", "frequency"},
    {HistogramScale::log, "log", "log(frequency)"},
});

enum class Color { automatic, always, never };
template <>
inline constexpr auto vocabulary<Color> = std::to_array<Word<Color>>({
    {Color::automatic, "auto", "on a terminal, unless NO_COLOR is set"},
    {Color::always, "always", "also into files and pipes on stdout"},
    {Color::never, "never", "never"},
});

/// The name is also the file extension, but for text (txt) and markdown (md).
enum class Format { text, json, jsonl, csv, markdown, xml, gp, svg, png, dot };
template <>
inline constexpr auto vocabulary<Format> = std::to_array<Word<Format>>({
    {Format::text, "text", "for people"},
    {Format::json, "json", "one document"},
    {Format::jsonl, "jsonl", "one document a case and line"},
    {Format::csv, "csv", "one row a case and device"},
    {Format::markdown, "markdown", "a table for a pull request"},
    {Format::xml, "xml", "JUnit's, for CI"},
    {Format::gp, "gp", "a chart as a gnuplot script with its data"},
    {Format::svg, "svg", "a chart drawn by gnuplot"},
    {Format::png, "png", "a chart drawn by gnuplot"},
    {Format::dot, "dot", "a topology as a graph for Graphviz"},
});

/// What stdout may carry.
constexpr bool is_for_stdout(Format format) {
  return format <= Format::markdown;
}

/// Whether it is written once, at the end, and never to stdout.
constexpr bool is_picture(Format format) {
  return format >= Format::gp;
}

enum class OutcomeKind { measured, skipped, failed };
template <>
inline constexpr auto vocabulary<OutcomeKind> = std::to_array<Word<OutcomeKind>>({
    {OutcomeKind::measured, "measured", "ran to its end, or to the signal"},
    {OutcomeKind::skipped, "skipped", "cannot run, for a reason known beforehand"},
    {OutcomeKind::failed, "failed", "was started and failed"},
});

/// What is remarkable about a result; nothing is dropped because of a mark.
enum class Mark {
  l2,
  bimodal,
  throttled,
  harness_bound,
  shared,
  staged,
  pageable,
  in_place,
  prefetch_unsupported,
  no_warmup,
  verified_every,
  thinned
};
template <>
inline constexpr auto vocabulary<Mark> = std::to_array<Word<Mark>>({
    {Mark::l2, "L2", "source and destination of a device are at most twice its L2 cache"},
    {Mark::bimodal, "bimodal", "the samples have two modes"},
    {Mark::throttled, "throttled", "something held a device's clocks down"},
    {Mark::harness_bound, "harness-bound",
     "the median is under ten times the cost of an empty copy"},
    {Mark::shared, "shared", "another process computes on a device"},
    {Mark::staged, "staged", "without peer access, the copy goes through the host"},
    {Mark::pageable, "pageable", "the driver stages pageable memory through buffers of its own"},
    {Mark::in_place, "in-place", "the copy engine ran where the pages are"},
    {Mark::prefetch_unsupported, "prefetch-unsupported", "the default prefetch was dropped"},
    {Mark::no_warmup, "no-warmup", "no warm-up pass was made"},
    {Mark::verified_every, "verify-every",
     "checks between the samples change caches and residency"},
    {Mark::thinned, "thinned", "more samples than are stored"},
});

/// The word for `value`.
template <class E>
constexpr std::string_view name(E value) {
  for (const auto& word : vocabulary<E>)
    if (word.value == value) return word.name;
  return "?";
}

/// The value of `text`, or nothing where it is no word of the vocabulary.
template <class E>
constexpr std::optional<E> parse_word(std::string_view text) {
  for (const auto& word : vocabulary<E>)
    if (word.name == text) return word.value;
  return std::nullopt;
}

}  // namespace mgpu
