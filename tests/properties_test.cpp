// SPDX-License-Identifier: MIT
// What holds for every size and every list of GPUs, tried on many from fixed seeds.
#include "model/error.hpp"
#include "model/gpus.hpp"
#include "model/units.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

using Random = std::mt19937_64;

/// At least `low`, at most `high`; the same on every machine, as distributions are not.
std::uint64_t within(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}

/// Up to `most` characters or words of `parts`.
std::string text_from(Random& random, const std::vector<std::string>& parts, std::size_t most) {
  std::string text;
  for (std::uint64_t i = within(random, 0, most); i > 0; --i)
    text += parts[within(random, 0, parts.size() - 1)];
  return text;
}

std::string in_any_case(Random& random, std::string text) {
  for (char& c : text)
    if (random() % 2 && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

/// What `read` makes of a text, or the kind of its refusal.
template <class Read>
auto outcome(Read read) -> std::pair<std::optional<decltype(read())>, ErrorKind> {
  try {
    return {read(), ErrorKind::runtime};
  } catch (const Error& error) {
    return {std::nullopt, error.kind};
  }
}

/// Their UUIDs begin alike in pairs, and every fourth one has the bus of another in a domain of its
/// own.
Machine machine_of(int gpus) {
  Machine machine;
  for (int i = 0; i < gpus; ++i) {
    Device gpu;
    gpu.ordinal = i;
    gpu.uuid = fmt::format("GPU-{:04x}{}a1e-0c5d", 0x9a10 + i / 2, i % 2);
    gpu.pci = i % 4 == 3 ? fmt::format("{:08x}:{:02x}:00.0", i, 0x10 + i - 1)
                         : fmt::format("00000000:{:02x}:00.0", 0x10 + i);
    machine.devices.push_back(gpu);
  }
  return machine;
}

/// Some of 0 to `count` - 1, at least one, in any order.
std::vector<int> some_of(Random& random, int count) {
  std::vector<int> ordinals(static_cast<std::size_t>(count));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  for (std::size_t i = ordinals.size(); i > 1; --i)
    if (random() % 2) std::swap(ordinals[i - 1], ordinals[within(random, 0, i - 1)]);
  ordinals.resize(within(random, 1, ordinals.size()));
  return ordinals;
}

/// Neighbours that ascend by one are written as ranges, now and then.
std::vector<std::string> entries_of(Random& random, const std::vector<int>& ordinals) {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < ordinals.size();) {
    std::size_t end = i + 1;
    while (end < ordinals.size() && ordinals[end] == ordinals[end - 1] + 1 && random() % 4) ++end;
    entries.push_back(end == i + 1 && random() % 4
                          ? std::to_string(ordinals[i])
                          : fmt::format("{}-{}", ordinals[i], ordinals[end - 1]));
    i = end;
  }
  return entries;
}

/// One device in a notation that names no other.
std::string name_of(Random& random, const Device& gpu) {
  switch (random() % 4) {
    case 0:
      return std::to_string(gpu.ordinal);
    case 1:  // the ninth character tells the two of a pair apart
      return in_any_case(random, gpu.uuid.substr(0, within(random, 9, gpu.uuid.size())));
    case 2:
      return in_any_case(random, gpu.pci);
    default: {
      const std::string text = gpu.pci.substr(0, gpu.pci.size() - 2);  // without the function
      return text.starts_with("00000000:") && random() % 2 ? text.substr(9) : text;
    }
  }
}

std::vector<int> resolve(std::string_view text, const Machine& machine) {
  return resolve_gpus(parse_gpus(text, "--gpus"), machine, "--gpus");
}

constexpr unsigned seeds = 20, rounds = 200;

}  // namespace

TEST_CASE("a size is worth its number times its unit, rounded down", "[properties]") {
  const auto [unit, worth] = GENERATE(table<std::string, Bytes>({
      {"kb", 1'000},
      {"kib", Bytes{1} << 10},
      {"mb", 1'000'000},
      {"mib", Bytes{1} << 20},
      {"gb", 1'000'000'000},
      {"gib", Bytes{1} << 30},
      {"tb", 1'000'000'000'000},
      {"tib", Bytes{1} << 40},
  }));
  Random random(worth);
  for (unsigned i = 0; i < seeds * rounds / 8; ++i) {
    const Bytes whole = within(random, 1, 1'000'000);
    const auto digits = static_cast<int>(within(random, 1, 6));
    Bytes power = 1;
    for (int d = 0; d < digits; ++d) power *= 10;
    const Bytes fraction = within(random, 0, power - 1);
    const std::string text = fmt::format(
        "{}.{:0{}}{}{}{}", whole, fraction, digits, std::string(within(random, 0, 3), '0'),
        std::string(within(random, 0, 2), ' '), in_any_case(random, unit));
    CAPTURE(text);
    const Bytes bytes = whole * worth + fraction * worth / power;
    REQUIRE(parse_bytes(text, "--align") == bytes);
    REQUIRE(parse_size(text, "--size") == Size{bytes, false});
    REQUIRE(parse_rate(text + "/s", "--expect") == static_cast<double>(bytes));
    REQUIRE(parse_size(text + in_any_case(random, "/gpu"), "--size") == Size{bytes, true});
  }
}

TEST_CASE("any text is a size that is printed and read back, or bad usage", "[properties]") {
  static const std::vector<std::string> parts{"0",      "1",    "9",    "18446744073709551615",
                                              ".",      " ",    "k",    "M",
                                              "G",      "t",    "i",    "B",
                                              "b",      "/gpu", "/GPU", "-",
                                              "+",      "e",    "inf",  "nan",
                                              "%",      "0x1",  "\n",   "\xff",
                                              "1.5GiB", "TiB"};
  Random random(GENERATE(range(0u, seeds)));
  int sizes = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    const std::string text = text_from(random, parts, 5);
    CAPTURE(text);
    const auto [size, refusal] = outcome([&] { return parse_size(text, "--size"); });
    if (size) {
      ++sizes;
      REQUIRE(size->bytes > 0);
      const std::string printed = format_bytes(size->bytes) + (size->per_gpu ? "/gpu" : "");
      CAPTURE(printed);
      REQUIRE(parse_size(printed, "--size") == *size);
    } else {
      REQUIRE(refusal == ErrorKind::usage);
    }
  }
  CHECK(sizes > 0);
  CHECK(sizes < static_cast<int>(rounds));
}

TEST_CASE("a printed size is never longer than its bytes in full", "[properties]") {
  Random random(GENERATE(range(0u, seeds)));
  for (unsigned i = 0; i < rounds; ++i) {
    const Bytes bytes = random() >> within(random, 0, 63);
    REQUIRE(format_bytes(bytes).size() <= fmt::format("{} B", bytes).size());
  }
}

TEST_CASE("a number that is printed is read as the same number", "[properties]") {
  Random random(GENERATE(range(0u, seeds)));
  for (unsigned i = 0; i < rounds; ++i) {
    const double number = static_cast<double>(random() >> within(random, 0, 63)) /
                          static_cast<double>(within(random, 1, 1'000'000));
    REQUIRE(parse_number(fmt::format("{}", number), "--timeout", true) == number);
    const auto count = static_cast<std::int64_t>(random() >> within(random, 1, 63));
    REQUIRE(parse_count(std::to_string(count), "--samples", 0, count) == count);
    const auto past =
        outcome([&] { return parse_count(fmt::format("{}", count), "-n", -1, count - 1); });
    REQUIRE_FALSE(past.first);
    REQUIRE(past.second == ErrorKind::usage);
  }
}

TEST_CASE("ordinals and ranges name just these devices in their order", "[properties]") {
  Random random(GENERATE(range(0u, seeds)));
  const int gpus = static_cast<int>(within(random, 1, 16));
  const Machine machine = machine_of(gpus);
  for (unsigned i = 0; i < rounds; ++i) {
    const std::vector<int> ordinals = some_of(random, gpus);
    const std::string text = fmt::format("{}", fmt::join(entries_of(random, ordinals), ","));
    CAPTURE(text);
    REQUIRE(resolve(text, machine) == ordinals);
  }
}

TEST_CASE("every notation names its device, also beside other notations", "[properties]") {
  Random random(GENERATE(range(0u, seeds)));
  const Machine machine = machine_of(16);
  for (unsigned i = 0; i < rounds; ++i) {
    const std::vector<int> ordinals = some_of(random, 16);
    std::vector<std::string> names;
    for (const int ordinal : ordinals)
      names.push_back(name_of(random, machine.devices[static_cast<std::size_t>(ordinal)]));
    const std::string text = fmt::format("{}", fmt::join(names, ","));
    CAPTURE(text);
    REQUIRE(resolve(text, machine) == ordinals);
  }
}

TEST_CASE("a device that is named again is bad usage, in whatever notation", "[properties]") {
  Random random(GENERATE(range(0u, seeds)));
  const Machine machine = machine_of(16);
  for (unsigned i = 0; i < rounds; ++i) {
    std::vector<int> ordinals = some_of(random, 16);
    const int again = ordinals[within(random, 0, ordinals.size() - 1)];
    ordinals.insert(
        ordinals.begin() + static_cast<std::ptrdiff_t>(within(random, 0, ordinals.size())), again);
    std::vector<std::string> names;
    for (const int ordinal : ordinals)
      names.push_back(name_of(random, machine.devices[static_cast<std::size_t>(ordinal)]));
    const std::string text = fmt::format("{}", fmt::join(names, ","));
    CAPTURE(text);
    const auto [found, refusal] = outcome([&] { return resolve(text, machine); });
    REQUIRE_FALSE(found);
    REQUIRE(refusal == ErrorKind::usage);
  }
}

TEST_CASE("any text names different devices of the machine, or is refused", "[properties]") {
  static const std::vector<std::string> parts{
      "0", "1",  "2",       "15",   "16",       "999999999999", ",", ",", ",",
      "-", "-",  "all",     "GPU-", "gpu-9a10", "MIG-",         "9", "a", "1e",
      ":", ".0", "10:00.0", "/",    " ",        "host"};
  Random random(GENERATE(range(0u, seeds)));
  const Machine machine = machine_of(16);
  int lists = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    const std::string text = text_from(random, parts, 6);
    CAPTURE(text);
    const auto [ordinals, refusal] = outcome([&] { return resolve(text, machine); });
    if (ordinals) {
      ++lists;
      REQUIRE_FALSE(ordinals->empty());
      REQUIRE(std::set(ordinals->begin(), ordinals->end()).size() == ordinals->size());
      REQUIRE(
          std::ranges::all_of(*ordinals, [](int ordinal) { return ordinal >= 0 && ordinal < 16; }));
    } else {
      REQUIRE((refusal == ErrorKind::usage || refusal == ErrorKind::unavailable));
    }
  }
  CHECK(lists > 0);
}

TEST_CASE("a GPU as a place is what a list of it alone names", "[properties]") {
  Random random(GENERATE(range(0u, seeds)));
  const Machine machine = machine_of(16);
  for (unsigned i = 0; i < rounds; ++i) {
    const Device& gpu = machine.devices[within(random, 0, 15)];
    const std::string text = name_of(random, gpu);
    CAPTURE(text);
    const PlaceSpec place = parse_place(text, "--home");
    REQUIRE(place.kind == PlaceSpec::Kind::gpu);
    REQUIRE(resolve_gpus({place.gpu}, machine, "--home") == std::vector{gpu.ordinal});
  }
}
