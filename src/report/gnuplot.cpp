// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/histogram.hpp"
#include "report/phrases.hpp"
#include "report/renderers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace mgpu {
namespace {

constexpr int width = 900, height = 600, row_height = 18;
constexpr std::size_t longest_name = 80;

// Between single quotes gnuplot evaluates nothing, not even backquotes; '' is a quote.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : printable(text)) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

// A line feed is written between double quotes alone.
std::string quoted_lines(std::string_view text) {
  std::string lines = wrapped(text, 0, ", ", 100);
  lines.pop_back();
  std::string out;
  for (std::size_t from = 0; from <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', from), lines.size());
    out +=
        (from == 0 ? "" : ".\"\\n\".") + quoted(std::string_view(lines).substr(from, end - from));
    from = end + 1;
  }
  return out;
}

/// A script: its head, then what `body` adds.
std::string script(Format terminal, int rows, std::string_view title, std::string_view body) {
  std::string out = "# Drawn by gnuplot 5 or later.\n";
  if (terminal != Format::gp)
    out += fmt::format("set terminal {} size {},{} font 'sans,12' background 'white'\n",
                       terminal == Format::png ? "pngcairo" : "svg", width,
                       height + rows * row_height);
  // A title would be centred over the axes, which long names push to the right.
  return out + "set encoding utf8\nset termoption noenhanced\nset tmargin 4\nset label " +
         quoted_lines(title) +
         " at screen 0.5, screen 0.96 center\nset grid\n# The fifth colour is a yellow that white "
         "paper hides.\n"
         "set linetype 5 lc rgb '#999933'\nset xlabel offset 0,0.4\n" +
         std::string(body);
}

// Below the axes, in the middle of the picture. In the margin gnuplot leaves out what it thinks has
// no room.
std::string legend(int rows) {
  return fmt::format(
      "set bmargin {}\nset key at screen 0.5, screen 0.02 center bottom vertical maxrows {}\n",
      rows + 4, rows);
}

std::string joined(const std::vector<std::string>& plots) {
  return fmt::format("plot {}\n", fmt::join(plots, ", \\\n     "));
}

std::string setting(const Report& report) {
  std::map<std::string, int> models;
  for (const Device& device : report.machine.devices) ++models[device.name];
  std::vector<std::string> parts;
  for (const auto& [model, count] : models) parts.push_back(fmt::format("{} x {}", count, model));
  return fmt::format("{}", fmt::join(parts, ", "));
}

double gb(double bytes_per_s) {
  return bytes_per_s / 1e9;
}

/// Rate of the fastest sample, of the median and of the 99% point: a hiccup of one sample in
/// thousands would stretch the axis.
std::string rates_of(const CaseResult& r, Basis basis) {
  const bool moved = basis == Basis::moved;
  const Rate& rate = moved ? r.rates.moved : r.rates.copied;
  const auto bytes = static_cast<double>(moved ? r.bytes_moved : r.bytes_copied);
  const double slow = r.summary.p99 > 0 ? 1e9 * bytes / r.summary.p99 : rate.min;
  return fmt::format("{:.6g} {:.6g} {:.6g}", gb(rate.median), gb(std::min(slow, rate.median)),
                     gb(rate.max));
}

/// What all of them can be drawn by: payload only where each crosses a link.
Basis common_basis(const std::vector<CaseResult>& cases) {
  const bool all = std::ranges::all_of(
      cases, [](const CaseResult& result) { return result.basis == Basis::copied; });
  return all ? Basis::copied : Basis::moved;
}

std::vector<CaseResult> drawable(const Report& report) {
  std::vector<CaseResult> cases;
  for (const CaseResult& result : report.cases)
    if (is_measured(result) && result.rates.moved.median > 0) cases.push_back(result);
  return cases;
}

/// Peak of the memory of the devices that copy, by what to call it.
std::map<std::string, double> peaks_of(const std::vector<CaseResult>& cases,
                                       const Machine& machine) {
  std::map<std::string, double> peaks;
  if (common_basis(cases) == Basis::copied) return peaks;
  for (const CaseResult& result : cases) {
    double sum = 0;
    bool known = !result.what.gpus.empty();
    for (const int gpu : result.what.gpus) {
      const auto index = static_cast<std::size_t>(gpu);
      known = known && index < machine.devices.size() && machine.devices[index].memory_peak;
      if (known) sum += *machine.devices[index].memory_peak;
    }
    if (known)
      peaks.try_emplace(
          "memory peak, " + counted(result.what.gpus.size(), device_noun(machine.backend)), sum);
  }
  return peaks;
}

/// Beside other trials of a picture; empty where there is nothing to tell it by.
std::string name_of(const CaseResult& result, std::span<const CaseField* const> fields) {
  const std::string shape = series_name(result.what, fields);
  return result.file + (result.file.empty() || shape.empty() ? "" : ": ") + shape;
}

// Sizes as people write them; not more than have room.
std::string size_tics(const std::set<Bytes>& sizes) {
  constexpr std::size_t room = 12;
  const std::size_t stride = (sizes.size() + room - 1) / room;
  std::vector<std::string> tics;
  std::size_t i = 0;
  for (const Bytes size : sizes)
    if (i++ % stride == 0) tics.push_back(fmt::format("{} {}", quoted(format_bytes(size)), size));
  return fmt::format("set xtics ({})\n", fmt::join(tics, ", "));
}

std::string_view rate_label(Basis basis) {
  return basis == Basis::moved ? "'moved: read + written (GB/s)'" : "'copied: payload (GB/s)'";
}

std::string over_size(const Report& report, const std::vector<CaseResult>& cases, Format terminal,
                      const std::set<Bytes>& sizes) {
  constexpr std::size_t readable_bars = 6;
  const Basis basis = common_basis(cases);
  const auto fields = varying_fields(cases);
  std::vector<std::pair<std::string, std::vector<const CaseResult*>>> series;
  for (const CaseResult& result : cases) {
    const std::string called = name_of(result, fields);
    auto same = std::ranges::find(series, called, [](const auto& one) { return one.first; });
    if (same == series.end()) same = series.insert(series.end(), {called, {}});
    same->second.push_back(&result);
  }

  std::string data;
  std::vector<std::string> plots;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    auto& [called, points] = series[i];
    std::ranges::stable_sort(points, {}, [](const CaseResult* r) { return r->what.size; });
    data += fmt::format("$data{} << EOD\n", i);
    for (const CaseResult* point : points)
      data += fmt::format("{} {}\n", point->what.size, rates_of(*point, basis));
    data += "EOD\n";
    // Eight colours, then the same with other dashes.
    const std::string look =
        fmt::format("lt {} dt {} pt {} lw 2", i % 8 + 1, i / 8 % 5 + 1, i % 13 + 1);
    plots.push_back(
        fmt::format("$data{} using 1:2 with linespoints {} title {}", i, look,
                    quoted(called.empty() ? "median" : shortened(called, longest_name))));
    if (series.size() <= readable_bars)
      plots.push_back(
          fmt::format("$data{} using 1:2:3:4 with yerrorbars lt {} pt 0 notitle", i, i % 8 + 1));
    longest = std::max(longest, columns_of(called));
  }
  const auto peaks = peaks_of(cases, report.machine);
  const int named = static_cast<int>(series.size() + peaks.size());
  int dashes = 2;
  for (const auto& [called, peak] : peaks)
    plots.push_back(fmt::format("{:.6g} with lines lc 'gray40' dt {} title {}", gb(peak), dashes++,
                                quoted(called)));

  const int columns = longest > 50 ? 1 : longest > 20 ? 2 : 3;
  const int rows = (named + columns - 1) / columns;
  const std::string body =
      fmt::format(
          "set logscale x 2\nset logscale y 10\nset xlabel 'size of the array'\nset ylabel {}\n"
          "set offsets graph 0.03, graph 0.03, 0, 0\n",
          rate_label(basis)) +
      legend(rows) + size_tics(sizes) + data + joined(plots);
  const std::string title =
      fmt::format("mgpu: {}, {}", setting(report), common_phrase(cases, report.machine.backend));
  return script(terminal, rows, title, body);
}

// Where there is one size there is no axis for it: a row a case.
std::string by_case(const Report& report, const std::vector<CaseResult>& cases, Format terminal) {
  const Basis basis = common_basis(cases);
  const auto fields = varying_fields(cases);
  std::string data = "$data << EOD\n";
  std::vector<std::string> tics;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    data += fmt::format("{} {}\n", i + 1, rates_of(cases[i], basis));
    const std::string whole = name_of(cases[i], fields),
                      called = whole.empty() ? "round" : shortened(whole, longest_name);
    longest = std::max(longest, columns_of(called));
    tics.push_back(fmt::format("{} {}", quoted(called), i + 1));
  }
  data += "EOD\n";
  std::vector<std::string> plots = {
      "$data using 2:1:3:4 with xerrorbars lt 1 pt 7 lw 2 title 'median, fastest sample and 99% "
      "point'"};
  // gnuplot takes the names for wider than they are.
  constexpr double letter = 6.4;
  const double margin = (30 + letter * static_cast<double>(longest)) / width;
  int dashes = 2;
  std::string lines;
  for (const auto& [called, peak] : peaks_of(cases, report.machine)) {
    // Two points: a vertical line that the legend names.
    lines += fmt::format("$peak{} << EOD\n{:.6g} 0\n{:.6g} {}\nEOD\n", dashes, gb(peak), gb(peak),
                         cases.size() + 1);
    plots.push_back(fmt::format("$peak{0} using 1:2 with lines lc 'gray40' dt {0} title {1}",
                                dashes, quoted(called)));
    ++dashes;
  }
  std::string body = fmt::format(
      "set logscale x 10\nset xlabel {}\nset offsets graph 0.05, graph 0.05, 0, 0\n"
      "set lmargin screen {:.3f}\nset yrange [{}:0]\nset ytics font 'sans,10' ({})\n",
      rate_label(basis), margin, cases.size() + 1, fmt::join(tics, ", "));
  const int rows = static_cast<int>(plots.size());
  body += legend(rows) + data + lines + joined(plots);
  const std::string title =
      fmt::format("mgpu: {}, {}", setting(report), common_phrase(cases, report.machine.backend));
  const int beyond = std::max(static_cast<int>(cases.size()) - 20, 0);
  return script(terminal, beyond + rows, title, body);
}

/// The unit that a time is read in.
std::pair<double, std::string_view> unit_of(double ns) {
  if (ns < 1e3) return {1, "ns"};
  if (ns < 1e6) return {1e3, "μs"};
  if (ns < 1e9) return {1e6, "ms"};
  return {1e9, "s"};
}

std::string histogram(const Report& report, const CaseResult& result, Format terminal) {
  const Histogram bins = make_histogram(result.samples_ns, histogram_width(result.summary));
  const auto [unit, unit_name] = unit_of(result.summary.median);
  const double step = bins.step > 0 ? bins.step : 1;
  std::string data = "$data << EOD\n";
  for (std::size_t i = 0; i < bins.counts.size(); ++i)
    if (bins.counts[i] > 0)
      data +=
          fmt::format("{:.9g} {:.0f}\n", (bins.low + (static_cast<double>(i) + 0.5) * step) / unit,
                      bins.counts[i]);
  data += "EOD\n";
  const double past = bins.high + 1.5 * step;
  std::vector<std::string> plots = {"$data using 1:2 with boxes lt 1 title 'samples'"};
  if (bins.slowest > 0) {
    data += fmt::format("$slowest << EOD\n{:.9g} {:.0f}\nEOD\n", past / unit, bins.slowest);
    plots.push_back(fmt::format(
        "$slowest using 1:2 with boxes lt 2 title {}",
        quoted(fmt::format("the slowest 1%, up to {}", format_time_short(result.summary.max)))));
  }
  std::string body;
  const auto mark = [&](double ns, std::string_view called, int line) {
    if (ns > bins.high) return;
    body += fmt::format(
        "set arrow from first {0:.9g}, graph 0 to first {0:.9g}, graph 1 nohead lc 'black' dt "
        "{1}\n",
        ns / unit, line);
    plots.push_back(fmt::format("1/0 with lines lc 'black' dt {} title {}", line,
                                quoted(fmt::format("{} {}", called, format_time_short(ns)))));
  };
  mark(result.summary.median, "median", 2);
  mark(result.summary.mean, "mean", 3);
  body += fmt::format(
      "set xlabel {}\nset ylabel 'samples{}'\n{}set style fill solid 0.7 noborder\n"
      "set boxwidth {:.9g}\nset xrange [{:.9g}:{:.9g}]\n",
      quoted(fmt::format("time of a sample ({})", unit_name)),
      bins.logarithmic ? " (logarithmic)" : "",
      bins.logarithmic ? "set logscale y 10\nset yrange [0.5:*]\n" : "set yrange [0:*]\n",
      step / unit, (bins.low - step) / unit, (past + step) / unit);
  body += legend(2) + data + joined(plots);
  return script(terminal, 0,
                fmt::format("mgpu: {}, {}, {}", setting(report),
                            counted(static_cast<std::uint64_t>(result.samples), "sample"),
                            case_phrase(result.what, report.machine.backend)),
                body);
}

}  // namespace

std::string render_gnuplot(const Report& report, Format terminal) {
  if (report.kind == ReportKind::fleet)
    throw Error(ErrorKind::usage,
                "a fleet has no picture: use text, json, jsonl, csv, markdown or xml");
  const std::vector<CaseResult> cases = drawable(report);
  if (report.kind != ReportKind::trials || cases.empty())
    throw Error(ErrorKind::runtime, "there is nothing to draw: no case was measured");
  if (report.cases.size() == 1) {
    if (cases.front().samples_ns.size() < 2)
      throw Error(ErrorKind::runtime,
                  "there is nothing to draw: a histogram needs two samples, take more of them");
    return histogram(report, cases.front(), terminal);
  }
  std::set<Bytes> sizes;
  for (const CaseResult& result : cases) sizes.insert(result.what.size);
  return sizes.size() == 1 ? by_case(report, cases, terminal)
                           : over_size(report, cases, terminal, sizes);
}

std::string render_gp(const Report& report, const RenderOptions&) {
  return render_gnuplot(report, Format::gp);
}

}  // namespace mgpu
