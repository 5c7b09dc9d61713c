// SPDX-License-Identifier: MIT
#include "cli_sweep.hpp"

#include "model/error.hpp"
#include "model/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace mgpu {
namespace {

constexpr std::size_t most_cases = 100'000;

using Names = Options::Names;

template <auto field>
Axis::value_type setter(const CaseSpec& from) {
  return [value = from.*field](CaseSpec& to) { to.*field = value; };
}

/// How the values of an option are written.
enum class Form { flag, repeated, words, counts, sizes };

struct AxisRow {
  std::string_view option;
  Axis::value_type (*value)(const CaseSpec&);
  Form form;
};

/// Outermost first.
constexpr AxisRow axis_rows[] = {
    {"--gpus", setter<&CaseSpec::gpus>, Form::repeated},
    {"--memory", setter<&CaseSpec::memory>, Form::words},
    {"--home", setter<&CaseSpec::home>, Form::words},
    {"--from", setter<&CaseSpec::from>, Form::words},
    {"--to", setter<&CaseSpec::to>, Form::words},
    {"--bidirectional", setter<&CaseSpec::bidirectional>, Form::flag},
    {"--split", setter<&CaseSpec::split>, Form::counts},
    {"--align", setter<&CaseSpec::align>, Form::sizes},
    {"--engine", setter<&CaseSpec::engine>, Form::words},
    {"--access", setter<&CaseSpec::access>, Form::words},
    {"--batch", setter<&CaseSpec::batch>, Form::counts},
    {"--prefetch", setter<&CaseSpec::prefetch>, Form::words},
    {"--cold", setter<&CaseSpec::cold>, Form::flag},
    {"--owner-wait", setter<&CaseSpec::owner_wait>, Form::words},
    {"--advise", setter<&CaseSpec::advise>, Form::words},
    {"--runtime", setter<&CaseSpec::runtime>, Form::words},
    {"--threads", setter<&CaseSpec::threads>, Form::words},
    {"--peer", setter<&CaseSpec::peer>, Form::words},
    {"--size", setter<&CaseSpec::size>, Form::sizes},
};

/// "A..B" or "A..B:F", as written for an option.
struct Range {
  std::string_view option;
  std::string text, low, high;
  double factor = 2;

  Error refused(std::string_view why) const { return bad_value(option, text, why); }
};

Range parse_range(const std::string& text, std::string_view option) {
  const std::size_t dots = text.find(".."), colon = text.find(':', dots);
  Range range{option, text, text.substr(0, dots), text.substr(dots + 2, colon - dots - 2)};
  if (colon == std::string::npos) return range;
  range.factor = parse_number(text.substr(colon + 1), fmt::format("factor of {}", option), true);
  if (range.factor <= 1) throw range.refused("must multiply by more than 1, as A..B:4 does");
  return range;
}

/// From `low` on, each the factor's multiple of the one before, in whole numbers; `high` is the
/// last.
std::vector<std::uint64_t> points(std::uint64_t low, std::uint64_t high, const Range& range) {
  if (low > high) throw range.refused("descends: write the smaller end first");
  std::vector<std::uint64_t> all;
  std::size_t steps = 0;
  for (long double at = static_cast<long double>(low); at < static_cast<long double>(high);
       at *= range.factor) {
    // Steps, not points: a factor hardly above 1 takes many to the next whole number.
    if (++steps > most_cases)
      throw range.refused(
          fmt::format("has more than {} steps: write a larger factor", format_count(most_cases)));
    const auto point = static_cast<std::uint64_t>(at + 0.5L);
    if (all.empty() || point > all.back()) all.push_back(point);
  }
  if (all.empty() || all.back() < high) all.push_back(high);
  return all;
}

Names counts(const Range& range) {
  const auto end = [&](const std::string& text) {
    const auto most = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::uint64_t>(parse_count(text, range.option, 1, most));
  };
  Names all;
  for (const auto point : points(end(range.low), end(range.high), range))
    all.push_back(std::to_string(point));
  return all;
}

Names sizes(const Range& range) {
  const Size low = parse_size(range.low, range.option), high = parse_size(range.high, range.option);
  if (low.per_gpu && !high.per_gpu)
    throw range.refused("has /gpu at its first end alone: write it behind the last, for both");
  Names all;
  for (const auto point : points(low.bytes, high.bytes, range))
    all.push_back(fmt::format("{}B{}", point, high.per_gpu ? "/gpu" : ""));
  return all;
}

/// Each value of a list, its ranges written out.
Names list_values(const std::string& text, std::string_view option, Form form) {
  Names all;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    const std::string entry = text.substr(begin, end - begin);
    if (entry.empty())
      throw bad_value(option, text, "has an empty entry: write values with one comma between them");
    Names values = {entry};
    if (form != Form::words && entry.find("..") != std::string::npos) {
      const Range range = parse_range(entry, option);
      values = form == Form::counts ? counts(range) : sizes(range);
    }
    all.insert(all.end(), values.begin(), values.end());
    if (all.size() > most_cases)
      throw usage_error("{} has more than {} values; write a shorter list", option,
                        format_count(most_cases));
  }
  return all;
}

bool varies(const Axis& axis) {
  CaseSpec first, other;
  axis.front()(first);
  return std::ranges::any_of(axis, [&](const auto& set) {
    set(other);
    return other != first;
  });
}

Axis default_sizes() {
  Axis axis;
  for (const std::string& text : list_values("1MiB..1GiB", "--size", Form::sizes))
    axis.emplace_back([size = parse_size(text, "--size")](CaseSpec& spec) { spec.size = size; });
  return axis;
}

}  // namespace

void AxisCollector::bind(Options& options, const std::function<void()>& settle) {
  for (const AxisRow& row : axis_rows) {
    if (row.form == Form::flag) continue;
    Options::Split split;
    if (row.form != Form::repeated)
      split = [&row](const std::string& text) { return list_values(text, row.option, row.form); };
    options.many(row.option, std::move(split), [this, &row, settle] {
      settle();
      take(row.option);
    });
  }
}

void AxisCollector::take(std::string_view option) {
  const auto* row = std::ranges::find(axis_rows, option, &AxisRow::option);
  values_[row->option].push_back(row->value(spec_));
}

std::vector<Axis> AxisCollector::axes(bool has_preset) const {
  std::vector<Axis> all;
  std::size_t cases = 1;
  bool any_varies = has_preset || values_.contains("--size");
  for (const AxisRow& row : axis_rows) {
    const auto given = values_.find(row.option);
    if (given == values_.end()) continue;
    any_varies = any_varies || varies(given->second);
    cases *= given->second.size();
    if (cases > most_cases)
      throw usage_error("the lists make more than {} cases; write shorter ones",
                        format_count(most_cases));
    all.push_back(given->second);
  }
  if (!any_varies) all.push_back(default_sizes());
  return all;
}

}  // namespace mgpu
