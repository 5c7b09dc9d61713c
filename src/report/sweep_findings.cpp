// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/sweep_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace mgpu {
namespace {

using Rows = std::vector<std::size_t>;

template <class Predicate>
Rows rows_where(const Report& report, const Predicate& wanted) {
  Rows rows;
  for (std::size_t i = 0; i < report.cases.size(); ++i)
    if (wanted(report.cases[i])) rows.push_back(i);
  return rows;
}

void add_best(const Report& report, const RowNames& names, bool starred,
              std::vector<std::string>& lines) {
  for (const BestOfSize& of : contests(report.cases)) {
    double fastest = report.cases[of.best.front()].summary.median;
    for (const std::size_t i : of.best) fastest = std::min(fastest, report.cases[i].summary.median);
    const std::string rows = !starred              ? names.list(of.best)
                             : of.best.size() == 1 ? "*"
                                                   : names.list(of.best) + " (*)";
    lines.push_back(fmt::format(
        "best at {}: {} {}; {}", format_bytes(of.size), rows, format_time_short(fastest),
        of.slowest < 1.005 ? "the others take as long"
                           : fmt::format("the slowest takes {} times as long",
                                         of.slowest < 999.5 ? fmt::format("{:.3g}", of.slowest)
                                                            : fmt::format("{:.0f}", of.slowest))));
  }
}

void add_verified(const Report& report, const RowNames& names, std::vector<std::string>& lines) {
  const Rows sampled = rows_where(report, is_measured);
  Rows unchecked = sampled;
  std::erase_if(unchecked, [&](std::size_t i) { return report.cases[i].verified == true; });
  if (sampled.empty()) return;
  if (unchecked.empty())
    lines.emplace_back("verified: all that were measured");
  else if (unchecked.size() == sampled.size())
    lines.emplace_back("not verified");
  else
    lines.push_back(fmt::format("verified: all that were measured but {}", names.list(unchecked)));
}

/// What the rows say about one cause.
struct CauseOfRows {
  CauseKind word = CauseKind::harness;
  std::string text;  // of the only row
  Rows rows;
  double least = 0, most = 0;  // ns
  double least_share = 0, most_share = 0;
  double median = 0;
  std::vector<std::string> options;
};

void add_to(CauseOfRows& all, const Cause& cause, std::size_t row, double median) {
  if (all.rows.empty() || all.rows.back() != row) all.rows.push_back(row);
  if (all.text.empty()) all.text = cause.text;
  if (cause.cost_ns > 0) {
    const bool first = all.most == 0;
    all.least = first ? cause.cost_ns : std::min(all.least, cause.cost_ns);
    all.least_share = first ? cause.cost_share : std::min(all.least_share, cause.cost_share);
    all.most = std::max(all.most, cause.cost_ns);
    all.most_share = std::max(all.most_share, cause.cost_share);
    all.median = median;
  }
  if (!cause.option.empty() && std::ranges::find(all.options, cause.option) == all.options.end())
    all.options.push_back(cause.option);
}

std::string phrase_of(const CauseOfRows& all) {
  std::string text(all.rows.size() == 1 ? std::string_view(all.text) : help_of(all.word));
  if (all.most > 0) {
    // The cache does not cost: it hides what the memory would take.
    const std::string_view verb = all.word == CauseKind::cached ? "hides" : "costs";
    text += all.least == all.most
                ? fmt::format("; {} {} of {} ({:.3g}%)", verb, format_time_short(all.most),
                              format_time_short(all.median), 100 * all.most_share)
                : fmt::format("; {} {} to {} ({:.3g}% to {:.3g}% of the median)", verb,
                              format_time_short(all.least), format_time_short(all.most),
                              100 * all.least_share, 100 * all.most_share);
  }
  if (!all.options.empty()) text += fmt::format(": {} removes it", fmt::join(all.options, " or "));
  return text;
}

void add_causes(const Report& report, const RowNames& names, std::vector<std::string>& lines) {
  std::vector<CauseOfRows> causes;
  for (std::size_t i = 0; i < report.cases.size(); ++i)
    for (const Cause& cause : report.cases[i].causes) {
      auto all = std::ranges::find(causes, cause.word, &CauseOfRows::word);
      if (all == causes.end()) {
        causes.emplace_back().word = cause.word;
        all = std::prev(causes.end());
      }
      add_to(*all, cause, i, report.cases[i].summary.median);
    }
  std::ranges::stable_sort(causes, std::ranges::greater{}, &CauseOfRows::most_share);
  for (const CauseOfRows& all : causes)
    lines.push_back(printable(
        fmt::format("cause {} ({}): {}", name(all.word), names.list(all.rows), phrase_of(all))));
}

}  // namespace

std::string RowNames::list(const Rows& cases) const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cases.size();) {
    std::size_t last = i;
    while (last + 1 < cases.size() && cases[last + 1] == cases[last] + 1) ++last;
    if (last < i + 2) last = i;  // two in a row are no range
    parts.push_back(names[cases[i]] + (last == i ? "" : "-" + names[cases[last]]));
    i = last + 1;
  }
  const std::string_view plural = cases.size() == 1 ? "" : "s";
  return (noun.empty() ? "" : fmt::format("{}{} ", noun, plural)) +
         fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<BestOfSize> contests(std::span<const CaseResult> cases) {
  std::map<Bytes, std::size_t> measured;
  for (const CaseResult& result : cases)
    if (is_measured(result)) ++measured[result.what.size];
  std::vector<BestOfSize> sizes = best_of_sizes(cases);
  std::erase_if(sizes, [&](const BestOfSize& of) { return measured[of.size] < 2; });
  return sizes;
}

std::string counted_cases(const Report& report) {
  std::vector<std::string> parts;
  for (const OutcomeKind kind : {OutcomeKind::skipped, OutcomeKind::failed})
    if (const auto n = std::ranges::count(report.cases, kind, &CaseResult::outcome); n > 0)
      parts.push_back(fmt::format("{} {}", n, name(kind)));
  return counted(report.cases.size(), "case") +
         (parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", ")));
}

std::string note_of(const CaseResult& result) {
  if (result.outcome == OutcomeKind::measured)
    return result.samples > 0 ? "" : "nothing was measured";
  return printable(fmt::format("{}: {}", result.outcome == OutcomeKind::failed ? "FAIL" : "skipped",
                               result.reason));
}

std::vector<std::string> note_lines(const Report& report, const Rows& cases,
                                    const RowNames& names) {
  std::vector<std::pair<std::string, Rows>> notes;
  std::map<std::string, std::size_t> known;
  for (const std::size_t i : cases) {
    const auto [same, is_new] = known.try_emplace(note_of(report.cases[i]), notes.size());
    if (is_new) notes.emplace_back(same->first, Rows{});
    notes[same->second].second.push_back(i);
  }
  std::vector<std::string> lines;
  for (const auto& [note, rows] : notes)
    lines.push_back(fmt::format("{}: {}", names.list(rows), note));
  return lines;
}

std::vector<std::string> finding_lines(const Report& report, const RowNames& names, bool starred) {
  std::vector<std::string> lines;
  add_best(report, names, starred, lines);
  add_verified(report, names, lines);
  for (const auto& word : vocabulary<Mark>)
    if (const Rows rows = rows_where(report,
                                     [&](const CaseResult& r) {
                                       return std::ranges::find(r.marks, word.value) !=
                                              r.marks.end();
                                     });
        !rows.empty())
      lines.push_back(fmt::format("mark {} ({}): {}", word.name, names.list(rows), word.help));
  lines.emplace_back(
      "rates are of the median: copied is payload, moved is read + written; 1 GB is 1,000,000,000 "
      "bytes");
  add_causes(report, names, lines);
  return lines;
}

}  // namespace mgpu
