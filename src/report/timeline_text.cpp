// SPDX-License-Identifier: MIT
#include "report/phrases.hpp"
#include "report/report.hpp"
#include "report/timeline_tracks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace mgpu {
namespace {

struct Letter {
  std::string_view what;  ///< as spans are named; the first row of a letter is its legend
  char letter;
};
// What "launching kernel" does between its parts is launching too.
constexpr auto letters = std::to_array<Letter>({{"wait for owner", 'w'},
                                                {"prefetch", 'p'},
                                                {"launch", 'l'},
                                                {"launching kernel", 'l'},
                                                {"synchronize", 's'},
                                                {"copy", 'c'}});

char letter_of(std::string_view what) {
  const auto found = std::ranges::find(letters, what, &Letter::what);
  return found == letters.end() ? '?' : found->letter;
}

/// The share of each cell that each letter has.
class Bar {
 public:
  Bar(Extent extent, std::size_t width)
      : start_(extent.start),
        cell_((extent.end - extent.start) / static_cast<double>(width)),
        cells_(width) {}

  /// What encloses comes before what it encloses, and loses that time to it.
  void add(const TimelineSample::Span& span) {
    while (!enclosing_.empty() && enclosing_.back()->end_ns <= span.start_ns) enclosing_.pop_back();
    spread(span.start_ns, span.end_ns, letter_of(span.what), 1);
    if (!enclosing_.empty()) {
      const TimelineSample::Span& outer = *enclosing_.back();
      spread(span.start_ns, std::min(span.end_ns, outer.end_ns), letter_of(outer.what), -1);
    }
    enclosing_.push_back(&span);
  }

  /// In each cell the letter that has most of it; a blank where there is none.
  std::string text() const {
    std::string line;
    for (const auto& cell : cells_) {
      const auto most = std::ranges::max_element(cell, {}, &std::pair<const char, double>::second);
      line += most == cell.end() ? ' ' : most->first;
    }
    return line;
  }

 private:
  void spread(double start_ns, double end_ns, char letter, double sign) {
    const auto last = static_cast<double>(cells_.size() - 1);
    const double from = (start_ns - start_) / cell_, to = (end_ns - start_) / cell_;
    const auto end = static_cast<std::size_t>(std::clamp(to, 0.0, last));
    for (auto i = static_cast<std::size_t>(std::clamp(from, 0.0, last)); i <= end; ++i) {
      const auto left = static_cast<double>(i);
      const double share = std::min(to, left + 1) - std::max(from, left);
      if (share > 0) cells_[i][letter] += sign * share;
    }
  }

  double start_, cell_;                        // ns
  std::vector<std::map<char, double>> cells_;  // shares by letter
  std::vector<const TimelineSample::Span*> enclosing_;
};

// Start, middle and end of the bars below: "0 ns        1.02 ms        2.03 ms".
std::string scale(Extent extent, std::size_t width) {
  const auto time = [](double ns) {
    return ns < 0 ? '-' + format_time_short(-ns) : format_time_short(ns);
  };
  const std::string low = time(extent.start), high = time(extent.end);
  const std::string middle = time((extent.start + extent.end) / 2);
  return fmt::format("{}{:^{}}{}", low, middle, width - columns_of(low) - columns_of(high), high);
}

std::string sample_text(const std::string& title, const TimelineSample& sample,
                        const std::vector<Track>& tracks) {
  std::size_t label = 0;
  for (const Track& track : tracks) label = std::max(label, columns_of(track.name));
  const std::size_t width = text_width - label - 4;  // beside blanks and bounds
  const Extent extent = extent_of(sample);
  std::string out = fmt::format("{}\n {:{}}  {}\n", title, "", label, scale(extent, width));
  for (const Track& track : tracks) {
    Bar bar(extent, width);
    for (const auto& span : track.spans) bar.add(span);
    out += fmt::format(" {:{}} │{}│\n", track.name, label, bar.text());
  }
  return out;
}

// Of the letters that may appear.
std::string legend(const std::vector<Track>& tracks) {
  std::set<char> used;
  for (const Track& track : tracks)
    for (const auto& span : track.spans) used.insert(letter_of(span.what));
  std::string line;
  for (const auto& [what, letter] : letters)
    if (used.erase(letter) > 0) line += fmt::format("  {} {}", letter, what);
  if (!used.empty()) line += "  ? other";
  return line.empty() ? "" : line.substr(1) + '\n';
}

}  // namespace

std::string render_timeline(const Report& report) {
  std::string out;
  for (std::size_t c = 0; c < report.cases.size(); ++c)
    for (const TimelineSample& sample : report.cases[c].timeline) {
      const auto tracks = tracks_of(sample, report.cases[c].what, report.machine.backend);
      out += (out.empty() ? "" : "\n") + sample_text(title_of(c, sample), sample, tracks) +
             legend(tracks);
    }
  return out;
}

}  // namespace mgpu
