// SPDX-License-Identifier: MIT
#include "model/gpus.hpp"

#include "model/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace mgpu {
namespace {

constexpr int max_ordinal = 1023;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text, int base = 10) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<int> parse_ordinal(std::string_view text) {
  const auto value = parse_whole<int>(text);
  return value && !text.starts_with('-') ? value : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

/// Any beginning of "GPU-<hex>" or "MIG-<hex>"; "MIG-GPU-<hex>/3/0" is how drivers before 470 wrote
/// it.
bool is_uuid(std::string_view text) {
  const std::string lowered = lower(text);
  std::string_view rest = lowered;
  const bool mig = rest.starts_with("mig-");
  if (mig) rest.remove_prefix(4);
  const bool gpu = rest.starts_with("gpu-");
  if (gpu) rest.remove_prefix(4);
  const auto allowed = mig ? "0123456789abcdef-/" : "0123456789abcdef-";
  return (mig || gpu) && !rest.empty() && rest.find_first_not_of(allowed) == std::string_view::npos;
}

/// Domain, bus, device and function of "[domain:]bus:device[.function]"; what is left out is 0.
std::optional<std::array<std::uint32_t, 4>> parse_pci(std::string_view text) {
  auto parts = split(text, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  if (parts.size() != 3) return std::nullopt;
  const auto slot = split(parts[2], '.');
  if (slot.size() > 2) return std::nullopt;

  const std::array fields{parts[0], parts[1], slot[0],
                          slot.size() == 2 ? slot[1] : std::string_view("0")};
  constexpr std::array<std::uint32_t, 4> most{0xffffffff, 0xff, 0x1f, 7};
  std::array<std::uint32_t, 4> address{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto value = parse_whole<std::uint32_t>(fields[i], 16);
    if (!value || *value > most[i]) return std::nullopt;
    address[i] = *value;
  }
  return address;
}

/// One device, in any notation but a range.
std::optional<GpuSelector> parse_one(std::string_view text) {
  using Kind = GpuSelector::Kind;
  if (const auto ordinal = parse_ordinal(text)) return GpuSelector{Kind::ordinal, *ordinal, ""};
  if (is_uuid(text)) return GpuSelector{Kind::uuid, 0, std::string(text)};
  if (parse_pci(text)) return GpuSelector{Kind::pci, 0, std::string(text)};
  return std::nullopt;
}

/// What messages call it.
std::string words(const GpuSelector& selector) {
  return selector.kind == GpuSelector::Kind::ordinal ? std::to_string(selector.ordinal)
                                                     : selector.text;
}

bool matches(const GpuSelector& selector, const Device& device) {
  switch (selector.kind) {
    case GpuSelector::Kind::all:
      return true;
    case GpuSelector::Kind::ordinal:
      return device.ordinal == selector.ordinal && selector.ordinal <= max_ordinal;
    case GpuSelector::Kind::uuid:
      return lower(device.uuid).starts_with(lower(selector.text));
    case GpuSelector::Kind::pci:
      return parse_pci(device.pci) == parse_pci(selector.text);
  }
  return false;
}

/// "2 visible: 0 NVIDIA H200 GPU-9a1e 00000000:17:00.0, ...; CUDA_VISIBLE_DEVICES=1,0".
std::string visible(const Machine& machine) {
  std::vector<std::string> rows;
  for (const auto& device : machine.devices) {
    std::string row = fmt::format("{} {}", device.ordinal, device.name);
    for (const auto& id : {device.uuid, device.pci})
      if (!id.empty()) row += " " + id;
    rows.push_back(std::move(row));
  }
  auto list = fmt::format("{} visible: {}", rows.size(), fmt::join(rows, ", "));
  if (machine.backend == BackendKind::host) return list;
  const auto variable = machine.environment.find("CUDA_VISIBLE_DEVICES");
  return variable == machine.environment.end()
             ? fmt::format("{}; CUDA_VISIBLE_DEVICES is unset", list)
             : fmt::format("{}; CUDA_VISIBLE_DEVICES={}", list, variable->second);
}

Error not_visible(const GpuSelector& selector, const Machine& machine, std::string_view option) {
  if (machine.backend == BackendKind::host)
    return Error(
        ErrorKind::unavailable,
        fmt::format("{}: there is no CPU device {} ({}); --host-devices sets how many there are",
                    option, words(selector), visible(machine)));
  const bool mig = std::ranges::any_of(machine.devices, &Device::mig);
  return Error(
      ErrorKind::unavailable,
      fmt::format("{}: {}{} is not visible ({}){}", option,
                  selector.kind == GpuSelector::Kind::ordinal ? "GPU " : "", words(selector),
                  visible(machine), mig ? "; a process can use one MIG instance" : ""));
}

}  // namespace

GpuList parse_gpus(std::string_view text, std::string_view option) {
  constexpr std::string_view advice =
      "write all, or ordinals, ranges, UUIDs or PCI addresses, such as 0,2-3";
  if (text.empty()) throw bad_value(option, text, fmt::format("names no device: {}", advice));
  if (text == "all") return {GpuSelector{}};

  GpuList list;
  std::set<std::pair<int, std::string>> seen;  // searching the list would be quadratic
  const auto add = [&](GpuSelector selector) {
    if (!seen.emplace(selector.ordinal, selector.text).second)
      throw bad_value(option, text,
                      fmt::format("names {} twice: write each device once", words(selector)));
    list.push_back(std::move(selector));
  };
  for (const auto entry : split(text, ',')) {
    if (entry.empty()) throw bad_value(option, text, fmt::format("has an empty entry: {}", advice));
    if (entry == "all")
      throw bad_value(option, text, "has all beside others: write all alone, or the others");
    if (auto one = parse_one(entry)) {
      add(std::move(*one));
      continue;
    }
    const auto ends = split(entry, '-');
    const auto first = parse_ordinal(ends.front()), last = parse_ordinal(ends.back());
    if (ends.size() != 2 || !first || !last)
      throw bad_value(option, text, fmt::format("has the malformed entry '{}': {}", entry, advice));
    if (*first > *last)
      throw bad_value(
          option, text,
          fmt::format("has the descending range {}: write {}-{}", entry, *last, *first));
    add({GpuSelector::Kind::ordinal, *first, ""});
    // The first ordinal that can name nothing stands for all behind it: 0-999999999 must not fill
    // the memory.
    for (int ordinal = *first + 1; ordinal <= std::min(*last, max_ordinal + 1); ++ordinal)
      add({GpuSelector::Kind::ordinal, ordinal, ""});
  }
  return list;
}

std::vector<int> resolve_gpus(const GpuList& list, const Machine& machine,
                              std::string_view option) {
  using Kind = GpuSelector::Kind;
  if (machine.devices.empty())
    throw Error(
        ErrorKind::no_gpu,
        fmt::format("{}: this machine has no usable GPU; --backend host copies with CPUs", option));

  std::vector<int> ordinals;
  std::vector<const GpuSelector*> named(machine.devices.size());
  for (const auto& selector : list) {
    if (machine.backend == BackendKind::host &&
        (selector.kind == Kind::uuid || selector.kind == Kind::pci))
      throw bad_value(option, selector.text,
                      "names no CPU device: with --backend host write ordinals, ranges or all");
    std::vector<int> found;
    for (const auto& device : machine.devices)
      if (matches(selector, device)) found.push_back(device.ordinal);
    if (found.empty()) throw not_visible(selector, machine, option);
    if (found.size() > 1 && selector.kind != Kind::all)
      throw Error(
          ErrorKind::unavailable,
          fmt::format("{}: {} is ambiguous, it names GPUs {} ({}); write more of it, or an ordinal",
                      option, selector.text, fmt::join(found, " and "), visible(machine)));
    for (const int ordinal : found) {
      auto& earlier = named[static_cast<std::size_t>(ordinal)];
      if (earlier)
        throw Error(ErrorKind::usage,
                    fmt::format("{}: {} and {} are the same device; name each once", option,
                                words(*earlier), words(selector)));
      earlier = &selector;
      ordinals.push_back(ordinal);
    }
  }
  return ordinals;
}

PlaceSpec parse_place(std::string_view text, std::string_view option) {
  constexpr std::string_view host = "host";
  PlaceSpec place;
  if (text == "local") return place;
  if (text.starts_with(host)) {
    const std::string_view rest = text.substr(host.size());
    place.kind = rest.empty() ? PlaceSpec::Kind::host : PlaceSpec::Kind::node;
    const char* const end = text.data() + text.size();
    if (rest.empty()) return place;
    if (rest.size() > 1 && rest[0] == ':' && std::isdigit(static_cast<unsigned char>(rest[1])))
      if (const auto read = std::from_chars(rest.data() + 1, end, place.node);
          read.ec == std::errc() && read.ptr == end)
        return place;
  } else if (auto gpu = parse_one(text)) {
    place.kind = PlaceSpec::Kind::gpu;
    place.gpu = std::move(*gpu);
    return place;
  }
  throw bad_value(option, text,
                  "is no place: write local, host, host:0 for a NUMA node, or one GPU by its "
                  "ordinal, UUID or PCI "
                  "address");
}

}  // namespace mgpu
