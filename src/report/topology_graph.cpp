// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/topology_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace mgpu {
namespace {

using Lines = std::vector<std::string>;
using Links = std::vector<const Link*>;

/// A text of dot in quotes, its lines centred, with `margin` on both sides.
std::string quoted(const Lines& lines, std::string_view margin = "") {
  std::string out = "\"";
  for (const std::string& line : lines) {
    if (out.size() > 1) out += "\\n";
    out += margin;
    for (const char c : printable(line)) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += margin;
  }
  return out + '"';
}

std::string gpu_id(int ordinal) {
  return fmt::format("gpu{}", ordinal);
}

/// "478 GB/s", "451 of 478 GB/s".
std::string rate_of(std::optional<double> now, std::optional<double> best) {
  if (!now) return "";
  if (!best || *best == *now) return gigabytes_per_s(*now) + " GB/s";
  return fmt::format("{} of {} GB/s", gigabytes_per_s(*now), gigabytes_per_s(*best));
}

std::string claim_of(const Link::Claim& claim) {
  std::vector<std::string_view> can;
  if (claim.read.value_or(false)) can.push_back("read");
  if (claim.write.value_or(false)) can.push_back("write");
  if (claim.atomics.value_or(false)) can.push_back("atomics");
  if (!can.empty()) return fmt::format("{}", fmt::join(can, ", "));
  return claim.read || claim.write ? "no peers" : "";
}

/// What all of these claim; where they differ, the least and the most.
std::string claims_of(const Links& links) {
  std::set<std::string> texts;
  for (const Link* link : links) texts.insert(claim_of(link->claimed));
  texts.erase("");
  if (texts.empty()) return "";
  return texts.size() == 1 ? *texts.begin() : fmt::format("{}", fmt::join(texts, " or "));
}

bool failed(const Links& links) {
  return std::ranges::any_of(links, [](const Link* link) { return link->proved == false; });
}

/// "read 390 to 396 GB/s", one a kind of copy, by the engine that is best at it; and whether a
/// probe failed.
Lines measured_on(const Links& links) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> reached;  // on each link
  std::set<std::string> times;
  for (const Link* link : links) {
    std::map<std::string, double> best;
    for (const Measured& one : link->measured) {
      const std::optional<double> value = one.latency_ns ? one.latency_ns : one.copied_rate;
      if (!value) continue;
      if (one.latency_ns) times.insert(one.what);
      if (std::ranges::find(order, one.what) == order.end()) order.push_back(one.what);
      const auto [entry, fresh] = best.try_emplace(one.what, *value);
      if (!fresh && (one.latency_ns ? *value < entry->second : *value > entry->second))
        entry->second = *value;
    }
    for (const auto& [what, value] : best) reached[what].push_back(value);
  }
  Lines lines;
  std::ranges::sort(order, {}, rank_of);
  for (const std::string& what : order) {
    const bool time = times.contains(what);
    const auto text = [&](double value) {
      return time ? fmt::format("{:.0f}", value) : gigabytes_per_s(value);
    };
    const auto [low, high] = std::ranges::minmax(reached[what]);
    std::string words = what;
    std::ranges::replace(words, '_', ' ');
    lines.push_back(fmt::format("{} {}{} {}", words, text(low),
                                text(low) == text(high) ? "" : " to " + text(high),
                                time ? "ns" : "GB/s"));
  }
  if (failed(links)) lines.push_back("probe FAILED");
  return lines;
}

void add_all(Lines& lines, Lines more) {
  for (std::string& line : more)
    if (!line.empty()) lines.push_back(std::move(line));
}

std::string edge(const std::string& a, const std::string& b, const Lines& label, double pen,
                 bool bad) {
  return fmt::format("  {} -- {} [label={}, penwidth={}{}];\n", a, b, quoted(label, "  "), pen,
                     bad ? ", color=\"red\", fontcolor=\"red\"" : "");
}

/// Who hangs below whom: GPUs on PCIe switches, these on NUMA nodes.
class Graph {
 public:
  explicit Graph(const Machine& machine) : machine_(machine) {
    for (const Device& device : machine.devices) group_.push_back(device.ordinal);
    for (const Link& link : machine.links)
      if (link.kind == LinkKind::pix || link.kind == LinkKind::pxb) unite(link.from, link.to);
  }

  std::string text() {
    std::string out =
        "graph topology {\n"
        "  graph [fontname=\"sans-serif\", nodesep=0.5, ranksep=0.9];\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
        "fontname=\"sans-serif\", fontsize=11];\n"
        "  edge [fontname=\"sans-serif\", fontsize=9];\n";
    out += hosts() + gpus();
    if (machine_.backend == BackendKind::host) return out + all_pairs() + "}\n";
    return out + bridges() + nvlinks() + "}\n";
  }

 private:
  std::string hosts() const {
    std::string out;
    for (const NumaNode& node : machine_.host.nodes)
      out += fmt::format(
          "  node{} [fillcolor=\"#dbe9f6\", label={}];\n", node.number,
          quoted({fmt::format("NUMA node {}", node.number), format_memory(node.memory_bytes),
                  node.cpus.empty() ? "no CPUs for this process"
                                    : "CPUs " + shortened(ranges_of(node.cpus), 30)}));
    if (needs_host()) out += "  host [fillcolor=\"#dbe9f6\", label=\"host\"];\n";
    // In a row, so that each is joined with the next one alone.
    for (std::size_t i = 1; i < machine_.host.nodes.size(); ++i)
      out += fmt::format("  node{} -- node{} [label=\"SYS\", style=dashed];\n",
                         machine_.host.nodes[i - 1].number, machine_.host.nodes[i].number);
    std::string row;
    for (const NumaNode& node : machine_.host.nodes) row += fmt::format(" node{};", node.number);
    return out + (row.empty() ? "" : fmt::format("  {{ rank=same;{} }}\n", row));
  }

  std::string gpus() const {
    std::string out, row;
    for (const Device& device : machine_.devices) {
      Lines label = {end_name(device.ordinal, machine_.backend), device.name};
      if (!device.pci.empty()) label.push_back(device.pci);
      out += fmt::format("  {} [fillcolor=\"#e2f0d9\", label={}];\n", gpu_id(device.ordinal),
                         quoted(label));
      row += ' ' + gpu_id(device.ordinal) + ';';
    }
    return out + (row.empty() ? "" : fmt::format("  {{ rank=same;{} }}\n", row));
  }

  /// PCI Express: each GPU to its switch or NUMA node, and the switches to theirs.
  std::string bridges() const {
    std::string out;
    std::set<int> drawn;
    for (const Device& device : machine_.devices) {
      const int group = group_[static_cast<std::size_t>(device.ordinal)];
      const bool alone = std::ranges::count(group_, group) == 1;
      const std::string above = alone ? home_of(device) : fmt::format("switch{}", group);
      out += edge(above, gpu_id(device.ordinal), pcie_label(device), 1,
                  failed(links_of(device, false)));
      if (alone || !drawn.insert(group).second) continue;
      out += fmt::format("  {} [fillcolor=\"#eeeeee\", label=\"PCIe switch\"];\n", above);
      out += edge(home_of(device), above, {}, 1, false);
    }
    return out;
  }

  Lines pcie_label(const Device& device) const {
    Lines label;
    const Pcie& pcie = device.pcie;
    if (pcie.generation && pcie.width)
      label.push_back(fmt::format("PCIe gen {} x{}", *pcie.generation, *pcie.width));
    Links host;
    for (const auto& [from, to] :
         {std::pair(host_end, device.ordinal), std::pair(device.ordinal, host_end)})
      if (const Link* link = find_link(machine_, from, to)) host.push_back(link);
    if (!host.empty()) label.push_back(rate_of(host.front()->now, host.front()->best));
    std::erase(label, "");
    add_all(label, measured_on(host));
    std::map<std::optional<LinkKind>, Links> by_kind;
    for (const Link* link : links_of(device, false)) by_kind[link->kind].push_back(link);
    for (const auto& [kind, links] : by_kind) {
      const std::string claims = claims_of(links);
      if (!claims.empty())
        label.push_back(fmt::format("{}: {}", kind ? name(*kind) : "peers", claims));
      add_all(label, measured_on(links));
    }
    return label;
  }

  std::string nvlinks() const {
    std::string out;
    bool any_switch = false;
    for (const Device& device : machine_.devices) {
      const Links links = links_of(device, true);
      const NvLinks& own = device.nvlinks;
      const double pen = 3;
      if (own.switched.value_or(false) && own.active.value_or(0) > 0) {
        any_switch = true;
        Lines label = {fmt::format("{} NVLinks", *own.active)};
        if (own.each && own.total)
          label.push_back(rate_of(*own.each * *own.active, *own.each * *own.total));
        add_all(label, {claims_of(links)});
        add_all(label, measured_on(links));
        out += edge(gpu_id(device.ordinal), "nvswitch", label, pen,
                    *own.active < own.total.value_or(0) || failed(links));
        continue;
      }
      for (const Link* link : links)
        if (link->from < link->to) out += pair_edges(*link, pen);
    }
    return any_switch ? "  nvswitch [fillcolor=\"#fff2cc\", label=\"NVSwitches\"];\n" + out : out;
  }

  /// A pair's label is a node between both: labels of edges in one row would cover each other.
  std::string pair_edges(const Link& link, double pen) const {
    Links both = {&link};
    if (const Link* back = find_link(machine_, link.to, link.from)) both.push_back(back);
    Lines label = {kind_text(link)};
    add_all(label, {rate_of(link.now, link.best)});
    if (machine_.backend == BackendKind::cuda) add_all(label, {claims_of(both)});
    add_all(label, measured_on(both));
    const bool bad = link.nvlinks_active < link.nvlinks_total || failed(both);
    const std::string id = fmt::format("link{}_{}", link.from, link.to);
    return fmt::format(
               "  {} [shape=plaintext, style=\"\", margin=0.05, width=0, height=0, fontsize=9, "
               "label={}{}];\n",
               id, quoted(label), bad ? ", fontcolor=\"red\"" : "") +
           edge(gpu_id(link.from), id, {}, pen, bad) + edge(gpu_id(link.to), id, {}, pen, bad);
  }

  /// Of groups of CPUs.
  std::string all_pairs() const {
    std::string out;
    for (const Device& device : machine_.devices)
      out += edge(home_of(device), gpu_id(device.ordinal), {}, 1, false);
    for (const Link& link : machine_.links)
      if (link.from != host_end && link.from < link.to) out += pair_edges(link, 1);
    return out;
  }

  /// From a device to others, by NVLink or otherwise.
  Links links_of(const Device& device, bool nvlink) const {
    Links links;
    for (const Link& link : machine_.links)
      if (link.from == device.ordinal && link.to != host_end && link.to != link.from &&
          (link.kind == LinkKind::nvlink) == nvlink)
        links.push_back(&link);
    return links;
  }

  std::string home_of(const Device& device) const {
    for (const NumaNode& node : machine_.host.nodes)
      if (device.numa == node.number || (!device.numa && machine_.host.nodes.size() == 1))
        return fmt::format("node{}", node.number);
    return "host";
  }

  bool needs_host() const {
    return std::ranges::any_of(machine_.devices,
                               [&](const Device& device) { return home_of(device) == "host"; });
  }

  void unite(int a, int b) {
    const int from = group_[static_cast<std::size_t>(a)], to = group_[static_cast<std::size_t>(b)];
    std::ranges::replace(group_, std::max(from, to), std::min(from, to));
  }

  const Machine& machine_;
  std::vector<int> group_;  // by ordinal: the least ordinal below the same PCIe switches
};

}  // namespace

std::string render_dot(const Report& report, const RenderOptions&) {
  if (report.kind != ReportKind::topology)
    throw Error(ErrorKind::runtime, "only a topology can be drawn as a graph: use mgpu topo");
  return Graph(report.machine).text();
}

}  // namespace mgpu
