// SPDX-License-Identifier: MIT
// Result files, and everything that is made of what was read.
#include "model/comparison.hpp"
#include "oracle.hpp"
#include "report/comparison.hpp"
#include "report/renderers.hpp"
#include "report/report.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

using Json = nlohmann::json;

std::vector<Report> read(std::string_view text) {
  std::vector<std::string> notes;
  return read_reports(text, "results.json", notes);
}

void check_text(const Report& report) {
  render(Format::text, report, {true, HistogramScale::automatic, 0});
  render(Format::text, report, {false, HistogramScale::linear, 20});
  render(Format::text, report, {false, HistogramScale::log, 80});
}

/// What cannot tell of a report of this kind says so: XML by Error{usage}, pictures by
/// Error{runtime}.
void check_others(const Report& report) {
  render(Format::csv, report);
  render(Format::markdown, report);
  taken([&] { render(Format::xml, report); });
  for (const Format terminal : {Format::gp, Format::svg})
    taken([&] { render_gnuplot(report, terminal); }, {ErrorKind::runtime});
  const bool drawn = taken([&] { render_dot(report, {}); }, {ErrorKind::runtime});
  require(drawn == (report.kind == ReportKind::topology), "a graph is of a topology");
  render_trace(report);
  render_timeline(report);
}

void check_saved_again(const Report& report) {
  const std::string saved = render(Format::json, report);
  const std::vector<Report> again = read(saved);
  require(again.size() == 1 && render(Format::json, again.front()) == saved,
          "what was read and written is read as the same");
  const std::string lines = render(Format::jsonl, report);
  if (!lines.empty()) read(lines);
}

void check_comparison(std::span<const Report> reports) {
  for (const bool force : {false, true}) {
    Comparison comparison;
    CompareOptions options;
    options.force = force;
    if (!taken([&] { comparison = compare(reports, reports.first(1), options); })) return;
    const BackendKind backend = reports.front().machine.backend;
    comparison_text(comparison, backend);
    comparison_markdown(comparison, backend);
    render_junit("mgpu", junit_cases(comparison, backend));
  }
}

/// Every value of a document; none where it is nested too deeply to be printed.
std::vector<Json*> values_of(Json& document) {
  std::vector<Json*> values;
  std::vector<std::pair<Json*, int>> open{{&document, 0}};
  while (!open.empty()) {
    const auto [value, depth] = open.back();
    open.pop_back();
    if (depth > 64) return {};
    values.push_back(value);
    if (value->is_structured())
      for (Json& item : *value) open.emplace_back(&item, depth + 1);
  }
  return values;
}

template <class T>
const T& any_of(const std::vector<T>& values, std::mt19937& random) {
  return values[random() % values.size()];
}

/// A number at the edge of something.
Json odd_number(std::mt19937& random) {
  using Int = std::numeric_limits<int>;
  using Whole = std::numeric_limits<std::int64_t>;
  static const std::vector<Json> odd{0,
                                     1,
                                     2,
                                     3,
                                     -1,
                                     100,
                                     1000,
                                     Int::max(),
                                     Int::min(),
                                     Whole::max(),
                                     Whole::min(),
                                     0.5,
                                     1e-320,
                                     1e19,
                                     1.7e308,
                                     std::numeric_limits<std::uint64_t>::max()};
  return any_of(odd, random);
}

Json odd_value(std::mt19937& random) {
  static const std::vector<Json> odd{nullptr, true, false, "", Json::array(), Json::object()};
  return random() % 2 ? odd_number(random) : any_of(odd, random);
}

/// Of the same type, so that the document may still be read.
Json like(const Json& value, const std::vector<Json*>& values, std::mt19937& random) {
  static const std::vector<std::string> odd{"", "local", "\x1b[31m\n\t\"'<&|",
                                            std::string(200, 'x')};
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) {
    const Json& other = *any_of(values, random);
    return other.is_string() ? other : Json(any_of(odd, random));
  }
  if (!value.is_number()) return *any_of(values, random);
  if (random() % 2) return odd_number(random);
  if (!value.is_number_float()) return value.get<std::uint64_t>() + random() % 5 - 2;
  const std::vector<double> factors{-1, 1e-9, 0.5, 0.99, 1.01, 2, 1e9};
  return value.get<double>() * any_of(factors, random);
}

void change_one(const std::vector<Json*>& values, std::mt19937& random) {
  Json& value = *any_of(values, random);
  if (value.is_structured() && !value.empty()) {
    auto item = value.begin();
    std::advance(item, static_cast<std::ptrdiff_t>(random() % value.size()));
    if (value.is_array() && random() % 2) {
      const Json copy = *item;
      value.push_back(copy);
    } else {
      value.erase(item);
    }
    return;
  }
  Json other = random() % 4 ? like(value, values, random) : odd_value(random);
  value = std::move(other);
}

/// `text` with one value of its document changed; empty where it is none.
std::string changed(std::string_view text, std::mt19937& random) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return {};
  const std::vector<Json*> values = values_of(document);
  if (values.empty()) return {};
  change_one(values, random);
  return document.dump();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Most changes of single bytes only make a document that is not JSON, so most changes here are of
// values: of a whole document, or of one line of several.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string_view text = text_of(data, size);
  std::string result = changed(text, random);
  if (result.empty()) {
    const std::size_t start = size == 0 ? 0 : text.rfind('\n', random() % size) + 1;
    const std::size_t end = std::min(text.find('\n', start), size);
    const std::string line = changed(text.substr(start, end - start), random);
    if (!line.empty())
      result = std::string(text.substr(0, start)) + line + std::string(text.substr(end));
  }
  if (result.empty() || result.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, result.data(), result.size());
  return result.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<Report> reports;
  // What is refused is no ground for further changes.
  if (!taken([&] { reports = read(text_of(data, size)); })) return -1;
  require(!reports.empty(), "a file holds a document");
  for (const Report& report : reports) {
    check_text(report);
    check_others(report);
    check_saved_again(report);
  }
  check_comparison(reports);
  return 0;
}
