// SPDX-License-Identifier: MIT
#include "report/topology_matrix.hpp"

#include "model/health.hpp"
#include "model/matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace mgpu {
namespace {

using Cell = std::function<std::string(const Link&)>;

bool is_pair(const Link& link) {
  return link.from != host_end && link.to != host_end;
}

std::vector<const Link*> pairs_of(const Machine& machine) {
  std::vector<const Link*> pairs;
  for (const Link& link : machine.links)
    if (is_pair(link) && link.from != link.to) pairs.push_back(&link);
  return pairs;
}

/// Rows are where a link begins, columns where it ends; the host comes last, where a link of its
/// own has a cell.
std::vector<Column> table(const Machine& machine, const Cell& cell_of) {
  std::vector<int> ends;
  for (const Device& device : machine.devices) ends.push_back(device.ordinal);
  if (std::ranges::any_of(machine.links,
                          [&](const Link& l) { return !is_pair(l) && !cell_of(l).empty(); }))
    ends.push_back(host_end);
  const auto label = [](int end) { return end == host_end ? "host" : std::to_string(end); };
  std::vector<Column> columns = {{machine.backend == BackendKind::host ? "from" : "GPU", {}}};
  for (const int from : ends) columns.front().cells.push_back(label(from));
  for (const int to : ends) {
    Column& column = columns.emplace_back(Column{label(to), {}});
    for (const int from : ends) {
      const Link* link = find_link(machine, from, to);
      const std::string cell = link ? cell_of(*link) : "";
      column.cells.push_back(!cell.empty() ? cell : from == to ? "X" : "-");
    }
  }
  return columns;
}

Matrix kinds(const Machine& machine) {
  Matrix matrix{"links",
                table(machine,
                      [](const Link& link) -> std::string {
                        if (!is_pair(link) || link.from == link.to) return "";
                        return link.kind ? kind_text(link) : "n/a";
                      }),
                {}};
  std::set<LinkKind> used;
  for (const Link* link : pairs_of(machine))
    if (link->kind) used.insert(*link->kind);
  for (const LinkKind kind : used)
    matrix.notes.push_back(
        fmt::format("{:<5} {}", kind == LinkKind::nvlink ? "NV#" : name(kind), help_of(kind)));
  return matrix;
}

std::string rate_cell(std::optional<double> rate) {
  return rate ? gigabytes_per_s(*rate) : "";
}

void add_rates(const Machine& machine, std::vector<Matrix>& matrices) {
  const auto any = [&](auto wanted) { return std::ranges::any_of(machine.links, wanted); };
  if (any([](const Link& link) { return link.now.has_value(); }))
    matrices.push_back({"rate of each link one way, GB/s now",
                        table(machine, [](const Link& l) { return rate_cell(l.now); }),
                        {}});
  if (any([](const Link& link) { return link.best && link.best != link.now; }))
    matrices.push_back({"rate of each link one way, GB/s at best",
                        table(machine, [](const Link& l) { return rate_cell(l.best); }),
                        {}});
}

std::string claim_cell(const Link& link) {
  const Link::Claim& claim = link.claimed;
  if (!claim.read && !claim.write && !claim.atomics) return "n/a";
  std::string cell;
  if (claim.read.value_or(false)) cell += 'r';
  if (claim.write.value_or(false)) cell += 'w';
  if (claim.atomics.value_or(false)) cell += 'a';
  return cell.empty() ? "no" : cell;
}

/// "0 to 1, 0 to 2: chipset not supported", one a reason.
std::vector<std::string> reasons(const std::vector<const Link*>& pairs) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Link* link : pairs)
    if (!link->claimed.reason.empty())
      by_reason[link->claimed.reason].push_back(fmt::format("{} to {}", link->from, link->to));
  std::vector<std::string> lines;
  for (const auto& [reason, which] : by_reason)
    lines.push_back(which.size() == pairs.size()
                        ? "all pairs: " + reason
                        : fmt::format("{}: {}", fmt::join(which, ", "), reason));
  return lines;
}

std::string claim_words(std::string_view cell) {
  constexpr std::array<std::pair<char, std::string_view>, 3> words{
      {{'r', "read"}, {'w', "write"}, {'a', "atomics"}}};
  if (cell == "no") return "none";
  if (cell == "n/a") return "n/a";
  std::vector<std::string_view> parts;
  for (const auto& [letter, word] : words)
    if (cell.find(letter) != cell.npos) parts.push_back(word);
  return fmt::format("{}", fmt::join(parts, ", "));
}

Matrix claims(const Machine& machine) {
  const auto pairs = pairs_of(machine);
  Matrix matrix{"peer access that each GPU claims to the memory of the others", {}, {}};
  const std::string first = claim_cell(*pairs.front());
  if (std::ranges::all_of(pairs, [&](const Link* l) { return claim_cell(*l) == first; })) {
    matrix.heading += ": " + claim_words(first);
    matrix.notes = reasons(pairs);
    return matrix;
  }
  matrix.columns = table(
      machine, [](const Link& l) { return is_pair(l) && l.from != l.to ? claim_cell(l) : ""; });
  matrix.notes = reasons(pairs);
  matrix.notes.insert(matrix.notes.begin(), "r read, w write, a atomics");
  return matrix;
}

void add_ranks(const Machine& machine, std::vector<Matrix>& matrices) {
  std::set<std::optional<int>> different;
  for (const Link* link : pairs_of(machine)) different.insert(link->performance_rank);
  if (different.size() < 2) return;
  matrices.push_back({"performance rank that CUDA gives them, 0 is the best",
                      table(machine,
                            [](const Link& link) {
                              return link.performance_rank ? std::to_string(*link.performance_rank)
                                                           : "";
                            }),
                      {}});
}

void add_proofs(const Machine& machine, std::vector<Matrix>& matrices) {
  if (std::ranges::none_of(machine.links, [](const Link& l) { return l.proved.has_value(); }))
    return;
  matrices.push_back({"proved by copies that were verified",
                      table(machine,
                            [](const Link& link) -> std::string {
                              if (!link.proved) return "";
                              return *link.proved ? "yes" : "FAIL";
                            }),
                      {}});
}

/// What and engine, and the NUMA node where it depends on one.
struct MeasuredKind {
  std::string what, engine;
  std::optional<int> node;
  bool operator==(const MeasuredKind&) const = default;
};

MeasuredKind kind_of(const Measured& one) {
  return {one.what, one.engine, one.node};
}

/// Those with a figure as they come, each once.
std::vector<MeasuredKind> measured_kinds(const Machine& machine, bool (*on)(const Link&)) {
  std::vector<MeasuredKind> kinds;
  for (const Link& link : machine.links)
    for (const Measured& one : link.measured)
      if (on(link) && (one.copied_rate || one.latency_ns) &&
          std::ranges::find(kinds, kind_of(one)) == kinds.end())
        kinds.push_back(kind_of(one));
  std::ranges::stable_sort(kinds, {}, [](const MeasuredKind& kind) {
    return std::tuple(rank_of(kind.what), kind.node, kind.engine);
  });
  return kinds;
}

bool is_latency(const MeasuredKind& kind) {
  return kind.what == name(CellKind::latency);
}

constexpr char slow_mark = '*';

/// "396", with a mark where its like do better; empty without a figure.
std::string measured_cell(const Machine& machine, const Link& link, const MeasuredKind& kind) {
  const auto one = std::ranges::find(link.measured, kind, kind_of);
  if (one == link.measured.end() || (!one->latency_ns && !one->copied_rate)) return "";
  std::string cell = one->latency_ns ? fmt::format("{:.0f}", *one->latency_ns)
                                     : gigabytes_per_s(*one->copied_rate);
  if (share_of_like(machine, link, *one).value_or(1) < enough_of_like) cell += slow_mark;
  return cell;
}

std::string phrase_of(const MeasuredKind& kind) {
  std::string text = kind.what;
  std::ranges::replace(text, '_', ' ');
  if (!kind.engine.empty()) text += " by " + kind.engine;
  if (kind.node) text += fmt::format(", NUMA node {}", *kind.node);
  return text;
}

void add_notes(Matrix& matrix, const std::set<std::string_view>& whats) {
  for (const auto& word : vocabulary<CellKind>)
    if (whats.contains(word.name)) {
      std::string text(word.name);
      std::ranges::replace(text, '_', ' ');
      matrix.notes.push_back(fmt::format("{}: {}", text, word.help));
    }
  const bool marked = std::ranges::any_of(matrix.columns, [](const Column& column) {
    return std::ranges::any_of(column.cells,
                               [](const std::string& cell) { return cell.ends_with(slow_mark); });
  });
  if (marked)
    matrix.notes.push_back(
        fmt::format("{} under {:.0f}% of the best of its like", slow_mark, 100 * enough_of_like));
}

/// Of pairs, with what was measured of the same kind on devices alone and with the host.
void add_pair_rates(const Machine& machine, std::vector<Matrix>& matrices) {
  const auto kinds =
      measured_kinds(machine, [](const Link& l) { return is_pair(l) && l.from != l.to; });
  std::set<std::string> explained;
  for (const MeasuredKind& kind : kinds) {
    Matrix& matrix = matrices.emplace_back();
    matrix.heading =
        fmt::format("measured {}, {}", phrase_of(kind), is_latency(kind) ? "ns" : "GB/s copied");
    matrix.columns =
        table(machine, [&](const Link& link) { return measured_cell(machine, link, kind); });
    add_notes(matrix, explained.insert(kind.what).second ? std::set<std::string_view>{kind.what}
                                                         : std::set<std::string_view>{});
  }
}

/// A column a device: what is of no pair.
void add_own_rates(const Machine& machine, std::vector<Matrix>& matrices) {
  const auto pairs =
      measured_kinds(machine, [](const Link& l) { return is_pair(l) && l.from != l.to; });
  auto kinds = measured_kinds(machine, [](const Link& l) { return !is_pair(l) || l.from == l.to; });
  std::erase_if(kinds, [&](const MeasuredKind& kind) {
    return std::ranges::find(pairs, kind) != pairs.end();
  });
  if (kinds.empty()) return;
  Matrix matrix{
      machine.backend == BackendKind::host
          ? "measured of each device alone, GB/s copied"
          : "measured of each GPU alone and with the host, GB/s copied",
      {{machine.backend == BackendKind::host ? "device" : "GPU", {}, Column::Align::left}},
      {}};
  std::set<std::string_view> whats;
  std::vector<std::pair<MeasuredKind, bool>> rows;  // and whether it is of the device alone
  for (const MeasuredKind& kind : kinds) {
    if (!is_latency(kind)) {
      whats.insert(kind.what);
      rows.emplace_back(kind, false);
      continue;
    }
    for (const bool own : {true, false})
      if (std::ranges::any_of(machine.links, [&](const Link& link) {
            return (link.from == link.to) == own && !measured_cell(machine, link, kind).empty();
          }))
        rows.emplace_back(kind, own);
  }
  for (const auto& [kind, own] : rows)
    matrix.columns.front().cells.push_back(
        is_latency(kind) ? fmt::format("{} of {}, ns", phrase_of(kind), own ? "itself" : "the host")
                         : phrase_of(kind));
  for (const Device& device : machine.devices) {
    Column& column = matrix.columns.emplace_back(Column{std::to_string(device.ordinal), {}});
    for (const auto& [kind, own] : rows) {
      std::string cell;
      for (const Link& link : machine.links) {
        const bool alone = link.from == link.to && link.from == device.ordinal;
        const bool host = !is_pair(link) && std::max(link.from, link.to) == device.ordinal;
        if ((alone && (own || !is_latency(kind))) || (host && !own))
          if (cell.empty()) cell = measured_cell(machine, link, kind);
      }
      column.cells.push_back(cell.empty() ? "-" : cell);
    }
  }
  add_notes(matrix, whats);
  matrices.push_back(std::move(matrix));
}

}  // namespace

std::string ranges_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == std::int64_t{numbers[last]} + 1)
      ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string end_name(int end, BackendKind backend) {
  return end == host_end ? "host" : fmt::format("{} {}", device_noun(backend), end);
}

std::size_t rank_of(std::string_view what) {
  const auto& words = vocabulary<CellKind>;
  return static_cast<std::size_t>(std::ranges::find(words, what, &Word<CellKind>::name) -
                                  words.begin());
}

std::string gigabytes_per_s(double bytes_per_s) {
  const double rate = bytes_per_s / 1e9;
  return rate < 99.95 ? fmt::format("{:.1f}", rate) : fmt::format("{:.0f}", rate);
}

std::vector<Matrix> topology_matrices(const Machine& machine) {
  std::vector<Matrix> matrices;
  if (!pairs_of(machine).empty()) {
    matrices.push_back(kinds(machine));
    add_rates(machine, matrices);
    if (machine.backend == BackendKind::cuda) matrices.push_back(claims(machine));
    add_ranks(machine, matrices);
  }
  add_proofs(machine, matrices);
  add_own_rates(machine, matrices);
  add_pair_rates(machine, matrices);
  return matrices;
}

}  // namespace mgpu
