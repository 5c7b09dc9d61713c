// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mgpu {
namespace {

// Counters are means, so neither need be whole.
std::string amount_of(double amount) {
  return amount < 10 ? fmt::format("{:.2g}", amount)
                     : format_count(static_cast<std::uint64_t>(std::min(amount + 0.5, 1e18)));
}

std::string amount_of_bytes(double bytes) {
  const std::string rate = format_rate(bytes);
  return rate.substr(0, rate.size() - 2);  // without its "/s"
}

// " (92% explicit prefetch, 8% access)"; what rounds to nothing is left out.
std::string shares_by_cause(const Counters& counters) {
  const Counters::ByCause& by = counters.d2d_by_cause;
  std::vector<std::string> shares;
  const auto add = [&](double bytes, std::string_view cause) {
    const double share = bytes / counters.d2d_bytes;
    if (share >= 0.005) shares.push_back(fmt::format("{} {}", percent(share), cause));
  };
  add(by.user, "explicit prefetch");
  add(by.coherence, "access");
  add(by.prefetch, "driver's prefetch");
  add(by.eviction, "eviction");
  add(by.access_counter, "access counters");
  return shares.empty() ? "" : fmt::format(" ({})", fmt::join(shares, ", "));
}

}  // namespace

std::string counted(std::uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string counted(std::uint64_t n, std::string_view noun) {
  return counted(n, noun, std::string(noun) + 's');
}

std::string_view device_noun(BackendKind backend) {
  return backend == BackendKind::host ? "CPU device" : "GPU";
}

std::string short_uuid(std::string_view uuid) {
  return std::string(uuid.substr(0, uuid.find('-') + 9));
}

std::string identity_of(const Device& device) {
  std::string text;
  if (!device.pci.empty()) text += device.pci + "  ";
  if (!device.uuid.empty()) text += short_uuid(device.uuid) + "  ";
  return printable(text + device.name);
}

std::string percent(double share) {
  return fmt::format("{:.0f}%", 100 * share);
}

std::string_view bottleneck_noun(Bottleneck of) {
  switch (of) {
    case Bottleneck::memory:
      return "memory";
    case Bottleneck::nvlink:
      return "NVLink";
    case Bottleneck::pcie:
      return "PCIe";
  }
  return "";
}

std::string peak_phrase(const std::optional<double>& share, const std::optional<Bottleneck>& of) {
  if (!share) return "-";
  return percent(*share) + (of ? fmt::format(" {}", bottleneck_noun(*of)) : "");
}

std::string counters_phrase(const Counters& c) {
  std::vector<std::string> parts;
  const auto add = [&](double amount, std::string phrase) {
    if (amount > 0) parts.push_back(std::move(phrase));
  };
  add(c.h2d_bytes, amount_of_bytes(c.h2d_bytes) + " host to device");
  add(c.d2h_bytes, amount_of_bytes(c.d2h_bytes) + " device to host");
  add(c.d2d_bytes, amount_of_bytes(c.d2d_bytes) + " device to device" + shares_by_cause(c));
  add(c.fault_groups,
      amount_of(c.fault_groups) + (c.fault_groups == 1 ? " fault group" : " fault groups"));
  add(c.thrashing, amount_of_bytes(c.thrashing) + " thrashing");
  add(c.throttling_ns, "pages held back for " + format_time_short(c.throttling_ns));
  add(c.remote_map_bytes, amount_of_bytes(c.remote_map_bytes) + " mapped remotely");
  if (parts.empty()) return "no migration";

  std::vector<std::string> pairs;
  const auto end_of = [](int ordinal) { return ordinal < 0 ? "host" : std::to_string(ordinal); };
  for (const auto& [from, to, bytes] : c.pairs)
    pairs.push_back(fmt::format("{} -> {} {}", end_of(from), end_of(to), amount_of_bytes(bytes)));
  return fmt::format("per sample {}{}{}", fmt::join(parts, ", "), pairs.empty() ? "" : "; ",
                     fmt::join(pairs, ", "));
}

std::string modes_phrase(const Modes& modes) {
  return fmt::format("{} at {}, {} at {}", percent(modes.low_share),
                     format_time_short(modes.low_centre), percent(modes.high_share),
                     format_time_short(modes.high_centre));
}

std::string state_phrase(const DeviceResult& device) {
  const Telemetry before = device.before.value_or(Telemetry{}),
                  after = device.after.value_or(Telemetry{});
  std::vector<std::string> parts;
  std::vector<std::string> reasons = before.event_reasons;
  for (const std::string& reason : after.event_reasons)
    if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
  if (!reasons.empty()) {
    std::vector<std::string> readings;
    if (after.power_w && after.power_limit_w)
      readings.push_back(fmt::format("{:.0f} of {:.0f} W", *after.power_w, *after.power_limit_w));
    if (after.temperature_c) readings.push_back(fmt::format("{} °C", *after.temperature_c));
    parts.push_back(fmt::format("held down by {}", fmt::join(reasons, ", ")) +
                    (readings.empty() ? "" : fmt::format(" ({})", fmt::join(readings, ", "))));
  }
  if (after.sm_mhz && after.sm_max_mhz && *after.sm_mhz < 0.9 * *after.sm_max_mhz)
    parts.push_back(fmt::format("SM at {} of {} MHz", *after.sm_mhz, *after.sm_max_mhz));
  const int others =
      std::max(before.other_processes.value_or(0), after.other_processes.value_or(0));
  if (others > 0)
    parts.push_back(
        counted(static_cast<std::uint64_t>(others), "other process", "other processes"));
  return printable(fmt::format("{}", fmt::join(parts, ", ")));
}

std::string cause_phrase(const Cause& cause, double median_ns) {
  std::string text = cause.text;
  if (cause.cost_ns > 0)
    // The cache does not cost: it hides what the memory would take.
    text += fmt::format(
        "; {} {} of {} ({:.3g}%)", cause.word == CauseKind::cached ? "hides" : "costs",
        format_time_short(cause.cost_ns), format_time_short(median_ns), 100 * cause.cost_share);
  if (!cause.option.empty()) text += fmt::format(": {} removes it", cause.option);
  return printable(text);
}

std::string expected_phrase(const Expected& expected) {
  return fmt::format("at least {} {}, got {}: {}", format_rate(expected.wanted),
                     name(expected.basis), expected.got ? format_rate(*expected.got) : "nothing",
                     expected.met ? "met" : "not met");
}

std::string judgement_phrase(const Judgement& j) {
  const std::string interval = j.ratio_low && j.ratio_high
                                   ? fmt::format(" ({:.3f} .. {:.3f})", *j.ratio_low, *j.ratio_high)
                                   : "";
  return printable(fmt::format("{}, ratio {:.3f}{}, {} {} against {}, tolerance {:g}%: {}",
                               name(j.verdict), j.ratio, interval, name(j.metric),
                               format_time(j.current.ns), format_time(j.base.ns), j.tolerance,
                               j.reason));
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too, in two bytes.
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) ++i;
    shown += byte < 0x20 || byte == 0x7F || c1 ? '?' : text[i];
  }
  return shown;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::string kept;
  std::size_t width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++width == columns) break;
    kept += c;
  }
  return kept + "…";
}

std::string wrapped(std::string_view text, std::size_t indent, std::string_view separator,
                    std::size_t width) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const auto end = text.find(separator, text.find_first_not_of(' '));
    const std::string_view piece = text.substr(0, end == text.npos ? end : end + separator.size());
    text.remove_prefix(piece.size());
    const std::size_t taken = columns_of(piece.substr(0, piece.find_last_not_of(' ') + 1));
    if (column > indent && column + taken > width) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    out += piece;
    column += columns_of(piece);
  }
  return out + '\n';
}

std::size_t width_of(const Column& column) {
  std::size_t width = columns_of(column.header);
  for (const std::string& cell : column.cells) width = std::max(width, columns_of(cell));
  return width;
}

std::size_t width_of(std::span<const Column> columns) {
  std::size_t width = 1;
  for (const Column& column : columns) width += width_of(column) + 2;
  return columns.empty() ? 0 : width - 2;
}

std::vector<std::string> fit(std::vector<Column>& columns, std::size_t width) {
  std::vector<std::string> dropped;
  while (width_of(columns) > width) {
    // The last of those that may go first.
    const auto next = std::ranges::max_element(columns.rbegin(), columns.rend(), {}, &Column::drop);
    if (next == columns.rend() || next->drop == 0) break;
    dropped.push_back(next->header);
    columns.erase(std::next(next).base());
  }
  return dropped;
}

std::string padded(std::string_view text, std::size_t width, Column::Align align) {
  return align == Column::Align::left ? fmt::format("{:<{}}", text, width)
                                      : fmt::format("{:>{}}", text, width);
}

std::string table_text(std::vector<Column> columns, std::size_t width) {
  fit(columns, width);
  std::vector<std::size_t> widths;
  for (const Column& column : columns) widths.push_back(width_of(column));
  std::string out;
  const auto add_row = [&](const auto& cell_of) {
    std::string line = " ";
    for (std::size_t i = 0; i < columns.size(); ++i)
      line += padded(cell_of(columns[i]), widths[i], columns[i].align) + "  ";
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  add_row([](const Column& column) -> const std::string& { return column.header; });
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row)
    add_row([&](const Column& column) -> const std::string& { return column.cells[row]; });
  return out;
}

}  // namespace mgpu
