// SPDX-License-Identifier: MIT
#include "report/fleet_page.hpp"

#include "report/case_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace mgpu {
namespace {

using enum Column::Align;

// Together with what surrounds them these make a page.
constexpr std::size_t outliers_shown = 20, gpus_shown = 32, nodes_shown = 10, cases_shown = 20,
                      troubles_shown = 6, bars_shown = 2;

struct GpuRow {
  const FleetGpu& gpu;
  std::string number;  ///< of the case; empty where there is one
};

struct NodeRow {
  const std::string& host;
  const FleetNodeCase& times;
  std::string number;
  double ratio;  ///< of its median to the fleet's
};

template <class Row>
struct Finding {
  std::string_view header;
  Column::Align align;
  int drop;
  std::string (*cell)(const Row&);
};

std::string optional_time(const std::optional<double>& ns) {
  return ns ? format_time(*ns) : "";
}

// "0000:17:00.0", as --gpus takes it too: wider domains are rare.
std::string short_pci(std::string_view pci) {
  constexpr std::string_view zeros = "0000";
  const bool wide = pci.find(':') == 8 && pci.starts_with(zeros);
  return std::string(pci.substr(wide ? zeros.size() : 0));
}

// Headers that a page replaces by what its devices are, and by what its rates count.
constexpr std::string_view device = "device", rate = "rate";

std::string rank_cell(const GpuRow& row) {
  return row.gpu.rank ? std::to_string(*row.gpu.rank) : "";
}

std::string outlier_cell(const GpuRow& row) {
  return row.gpu.outlier ? std::string(name(*row.gpu.outlier)) : "";
}

constexpr auto outlier_findings = std::to_array<Finding<GpuRow>>({
    {"node", left, 0, [](const GpuRow& r) { return r.gpu.host; }},
    {"rank", right, 1, rank_cell},
    {device, right, 0, [](const GpuRow& r) { return std::to_string(r.gpu.ordinal); }},
    {"UUID", left, 2, [](const GpuRow& r) { return short_uuid(r.gpu.uuid); }},
    {"PCI", left, 3, [](const GpuRow& r) { return short_pci(r.gpu.pci); }},
    {"case", right, 0, [](const GpuRow& r) { return r.number; }},
    {"median", right, 0, [](const GpuRow& r) { return format_time(r.gpu.median_ns); }},
    {rate, right, 4, [](const GpuRow& r) { return format_rate(r.gpu.rate); }},
    {"deviation", right, 0, [](const GpuRow& r) { return deviation(r.gpu.ratio); }},
    {"", left, 0, outlier_cell},
});

constexpr auto gpu_findings = std::to_array<Finding<GpuRow>>({
    {"node", left, 0, [](const GpuRow& r) { return r.gpu.host; }},
    {"rank", right, 1, rank_cell},
    {device, right, 0, [](const GpuRow& r) { return std::to_string(r.gpu.ordinal); }},
    {"case", right, 0, [](const GpuRow& r) { return r.number; }},
    {"min", right, 3, [](const GpuRow& r) { return optional_time(r.gpu.min_ns); }},
    {"median", right, 0, [](const GpuRow& r) { return format_time(r.gpu.median_ns); }},
    {"max", right, 3, [](const GpuRow& r) { return optional_time(r.gpu.max_ns); }},
    {rate, right, 2, [](const GpuRow& r) { return format_rate(r.gpu.rate); }},
    {"deviation", right, 0, [](const GpuRow& r) { return deviation(r.gpu.ratio); }},
    {"", left, 0, outlier_cell},
});

constexpr auto node_findings = std::to_array<Finding<NodeRow>>({
    {"node", left, 0, [](const NodeRow& r) { return r.host; }},
    {device, right, 2, [](const NodeRow& r) { return std::to_string(r.times.gpus); }},
    {"case", right, 0, [](const NodeRow& r) { return r.number; }},
    {"min", right, 3, [](const NodeRow& r) { return format_time(r.times.min_ns); }},
    {"median", right, 0, [](const NodeRow& r) { return format_time(r.times.median_ns); }},
    {"max", right, 1, [](const NodeRow& r) { return format_time(r.times.max_ns); }},
    {"deviation", right, 0, [](const NodeRow& r) { return deviation(r.ratio); }},
});

constexpr auto case_findings = std::to_array<Finding<FleetCase>>({
    {"nodes", right, 5, [](const FleetCase& c) { return std::to_string(c.nodes); }},
    {device, right, 0, [](const FleetCase& c) { return std::to_string(c.gpus); }},
    {"min", right, 3, [](const FleetCase& c) { return format_time(c.min_ns); }},
    {"25%", right, 4, [](const FleetCase& c) { return format_time(c.p25_ns); }},
    {"median", right, 0, [](const FleetCase& c) { return format_time(c.median_ns); }},
    {"75%", right, 4, [](const FleetCase& c) { return format_time(c.p75_ns); }},
    {"max", right, 2, [](const FleetCase& c) { return format_time(c.max_ns); }},
    {"MAD", right, 2, [](const FleetCase& c) { return fmt::format("{:.1f}%", 100 * c.mad); }},
    {"threshold", right, 1, threshold_phrase},
});

std::string more(std::size_t all, std::size_t shown, std::string_view what = "") {
  return fmt::format("and {} more{}: --json has all", all - shown, what);
}

/// Builds the parts of a page.
class Page {
 public:
  Page(const Fleet& fleet, BackendKind backend)
      : fleet_(fleet),
        noun_(backend == BackendKind::host ? "device" : device_noun(backend)),
        backend_(backend) {
    for (std::size_t i = 0; i < fleet.cases.size(); ++i)
      numbers_[{fleet.cases[i].key, fleet.cases[i].name}] = i;
  }

  FleetPage page() const {
    FleetPage page;
    page.heading = heading();
    page.cases = cases();
    if (fleet_.cases.size() <= bars_shown) page.bars = bars();
    if (!fleet_.gpus.empty()) {
      page.tables.push_back(outliers());
      page.tables.push_back(fleet_.gpus.size() <= gpus_shown ? gpus() : nodes());
    }
    add_failures(page.lines);
    add_missing(page.lines);
    page.exclude = fleet_.exclude.empty() ? "none" : printable(fleet_.exclude);
    return page;
  }

 private:
  template <class Row, std::size_t n>
  SweepTable table(std::string heading, const std::array<Finding<Row>, n>& findings,
                   const std::vector<Row>& rows, std::string_view devices) const {
    SweepTable out;
    out.heading = std::move(heading);
    out.notes.assign(rows.size(), "");
    for (const Finding<Row>& finding : findings) {
      Column column{std::string(finding.header == device ? devices
                                : finding.header == rate ? rates()
                                                         : finding.header),
                    {},
                    finding.align,
                    finding.drop};
      for (const Row& row : rows) column.cells.push_back(printable(finding.cell(row)));
      if (!std::ranges::all_of(column.cells, &std::string::empty))
        out.columns.push_back(std::move(column));
    }
    return out;
  }

  std::string_view rates() const {
    const Basis basis = fleet_.cases[0].basis;
    return std::ranges::all_of(fleet_.cases,
                               [&](const FleetCase& one) { return one.basis == basis; })
               ? name(basis)
               : rate;
  }

  std::string heading() const {
    std::size_t gpus = 0, ranks = 0;
    for (const FleetNode& node : fleet_.nodes) {
      gpus += node.gpus;
      ranks += node.ranks.size();
    }
    return fmt::format("{}, {}{}, {}", counted(fleet_.nodes.size(), "node"),
                       ranks > 0 ? counted(ranks, "rank") + ", " : "",
                       counted(gpus, device_noun(backend_)), counted(fleet_.cases.size(), "case"));
  }

  bool several() const { return fleet_.cases.size() > 1; }

  template <class Row>
  std::size_t index_of(const Row& of) const {
    return numbers_.at({of.key, of.name});
  }

  template <class Row>
  std::string number_of(const Row& of) const {
    return several() ? std::to_string(index_of(of) + 1) : "";
  }

  SweepTable cases() const {
    if (fleet_.cases.empty()) return {"no case was measured", {}, {}, {}, {}};
    const std::size_t shown = std::min(fleet_.cases.size(), cases_shown);
    const std::vector<FleetCase> rows(fleet_.cases.begin(),
                                      fleet_.cases.begin() + static_cast<std::ptrdiff_t>(shown));
    std::vector<CaseResult> all(fleet_.cases.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].what = fleet_.cases[i].what;
    const bool one_model = std::ranges::all_of(
        fleet_.cases, [&](const FleetCase& c) { return c.name == fleet_.cases[0].name; });

    SweepTable out = table(
        fmt::format(
            "{}: {}{}; medians of each {}'s {}{}", several() ? "cases" : "case",
            common_phrase(all, backend_), one_model ? ", " + printable(fleet_.cases[0].name) : "",
            device_noun(backend_),
            std::ranges::all_of(fleet_.cases, &FleetCase::device_times) ? "device time" : "time",
            has_equal_slices() ? "" : ", times scaled to the largest slice"),
        case_findings, rows, several_noun());
    if (several()) {
      std::vector<Column> names = {{"case", {}, right, 0}};
      for (const CaseField* field : varying_fields(all))
        names.push_back({std::string(field->header), {}, field->number ? right : left, 1});
      if (!one_model) names.push_back({"model", {}, left, 1});
      for (std::size_t i = 0; i < shown; ++i) {
        std::size_t column = 0;
        names[column++].cells.push_back(std::to_string(i + 1));
        for (const CaseField* field : varying_fields(all))
          names[column++].cells.push_back(field->cell(all[i].what));
        if (!one_model) names[column].cells.push_back(printable(rows[i].name));
      }
      out.columns.insert(out.columns.begin(), names.begin(), names.end());
    }
    if (fleet_.cases.size() > shown) out.lines.push_back(more(fleet_.cases.size(), shown));
    if (judged() > 0 && judged() < std::ssize(fleet_.cases))
      out.lines.push_back("threshold none: " + not_judged());
    return out;
  }

  std::string several_noun() const { return std::string(noun_) + 's'; }

  bool has_equal_slices() const {
    return std::ranges::all_of(fleet_.gpus, [&](const FleetGpu& gpu) {
      return gpu.bytes == fleet_.cases[index_of(gpu)].bytes;
    });
  }

  std::ptrdiff_t judged() const {
    return std::ranges::count_if(fleet_.cases,
                                 [](const FleetCase& one) { return one.threshold.has_value(); });
  }

  std::string not_judged() const {
    return fmt::format("not judged: a case needs at least {} {}", enough_to_judge, several_noun());
  }

  std::vector<FleetBars> bars() const {
    std::vector<FleetBars> all(fleet_.cases.size());
    for (std::size_t i = 0; several() && i < all.size(); ++i)
      all[i].caption = fmt::format("case {}", i + 1);
    for (const FleetGpu& gpu : fleet_.gpus) {
      const std::size_t number = index_of(gpu);
      all[number].medians.push_back(gpu.ratio * fleet_.cases[number].median_ns);
    }
    std::erase_if(all, [](const FleetBars& one) { return one.medians.size() < 2; });
    return all;
  }

  SweepTable outliers() const {
    std::vector<const FleetGpu*> worst;
    for (const FleetGpu& gpu : fleet_.gpus)
      if (gpu.outlier) worst.push_back(&gpu);
    std::ranges::stable_sort(worst, std::greater<>{},
                             [](const FleetGpu* gpu) { return std::abs(gpu->ratio - 1); });
    if (worst.empty()) return {judged() > 0 ? "no outliers" : not_judged(), {}, {}, {}, {}};
    const std::size_t shown = std::min(worst.size(), outliers_shown);
    std::vector<GpuRow> rows;
    for (std::size_t i = 0; i < shown; ++i) rows.push_back({*worst[i], number_of(*worst[i])});
    SweepTable out = table(fmt::format("{}{}", counted(worst.size(), "outlier"),
                                       worst.size() > 1 ? ", the worst first" : ""),
                           outlier_findings, rows, noun_);
    if (worst.size() > shown) out.lines.push_back(more(worst.size(), shown));
    return out;
  }

  SweepTable gpus() const {
    std::vector<GpuRow> rows;
    for (const FleetGpu& gpu : fleet_.gpus) rows.push_back({gpu, number_of(gpu)});
    return table(fmt::format("every {}", device_noun(backend_)), gpu_findings, rows, noun_);
  }

  SweepTable nodes() const {
    std::vector<NodeRow> rows;
    for (const FleetNode& node : fleet_.nodes)
      for (const FleetNodeCase& times : node.cases)
        rows.push_back({node.host, times, number_of(times),
                        times.median_ns / fleet_.cases[index_of(times)].median_ns});
    std::vector<std::size_t> order(rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t i) { return rows[i].ratio; });
    order.resize(std::min(order.size(), nodes_shown));
    std::vector<NodeRow> slowest;
    for (const std::size_t i : order) slowest.push_back(rows[i]);
    return table(slowest.size() < rows.size()
                     ? fmt::format("the {} slowest of {}{}", slowest.size(),
                                   counted(rows.size(), "node"), several() ? " by case" : "")
                     : "nodes, the slowest first",
                 node_findings, slowest, several_noun());
  }

  void add_failures(std::vector<std::string>& lines) const {
    std::size_t failures = 0;
    for (const FleetNode& node : fleet_.nodes)
      for (const std::string& failure : node.failures)
        if (++failures <= troubles_shown)
          lines.push_back(
              shortened(printable(fmt::format("failed: {}: {}", node.host, failure)), 78));
    if (failures > troubles_shown) lines.push_back(more(failures, troubles_shown, " failures"));
  }

  void add_missing(std::vector<std::string>& lines) const {
    const std::size_t shown = std::min(fleet_.missing.size(), troubles_shown);
    for (std::size_t i = 0; i < shown; ++i) {
      const MissingRank& rank = fleet_.missing[i];
      const auto last = std::ranges::find(fleet_.cases, rank.last_case, &FleetCase::key);
      const std::string done = rank.last_case.empty() ? "no case finished"
                               : last == fleet_.cases.end()
                                   ? "last case " + rank.last_case
                                   : "last case " + case_phrase(last->what, backend_);
      lines.push_back(
          shortened(printable(fmt::format("missing: {}, {}", missing_name(rank), done)), 78));
    }
    if (fleet_.missing.size() > shown)
      lines.push_back(more(fleet_.missing.size(), shown, " missing ranks"));
  }

  const Fleet& fleet_;
  std::string_view noun_;
  BackendKind backend_;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> numbers_;  // of cases
};

}  // namespace

const FleetCase& case_of(const Fleet& fleet, const FleetGpu& gpu) {
  return *std::ranges::find_if(fleet.cases, [&](const FleetCase& one) {
    return one.key == gpu.key && one.name == gpu.name;
  });
}

std::string deviation(double ratio) {
  return fmt::format("{:+.1f}%", 100 * (ratio - 1));
}

std::string threshold_phrase(const FleetCase& one) {
  return one.threshold ? fmt::format("{:.1f}%", 100 * *one.threshold) : "none";
}

std::string missing_name(const MissingRank& rank) {
  return fmt::format("rank {}{}", rank.rank, rank.host.empty() ? "" : " on " + rank.host);
}

FleetPage fleet_page(const Fleet& fleet, BackendKind backend) {
  return Page(fleet, backend).page();
}

}  // namespace mgpu
