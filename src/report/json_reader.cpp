// SPDX-License-Identifier: MIT
#include "report/document.hpp"
#include "report/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace mgpu {
namespace {

// Keys are looked up, never listed; a tree also keeps a hostile number of them cheap.
using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;

constexpr int max_depth = 32;

/// Where a value stands: a chain of what leads to it, so that only an error pays for its text.
struct Spot {
  const Spot* parent = nullptr;
  std::string_view key = {};
  std::size_t index = 0;

  std::string pointer() const {
    if (!parent) return "";
    return parent->pointer() + "/" + (key.empty() ? std::to_string(index) : std::string(key));
  }
};

/// What is wrong with the contents of a document, before its file is known.
[[noreturn]] void refuse(const Spot& spot, const std::string& what) {
  throw Error(ErrorKind::usage, spot.pointer() + ": " + what);
}

template <class T>
void decode(const Json& json, const Spot& spot, T&& field);

/// Visits the fields of a struct and fills them; unknown keys are passed over, a missing one is
/// null.
struct Reader {
  const Json& object;
  const Spot& spot;

  template <class T>
  void operator()(const char* key, T&& field) const {
    static const Json null;
    using Field = std::remove_cvref_t<T>;
    if constexpr (!is_a<Field, Derived>) {
      const auto found = object.find(key);
      const Json& json = found == object.end() ? null : *found;
      const Spot here{&spot, key};
      if constexpr (std::same_as<Field, std::string>)
        if (json.is_null()) return field.clear();
      decode(json, here, field);
    }
  }
};

template <class T>
T decode_integer(const Json& json, const Spot& spot) {
  if (!json.is_number_integer())
    refuse(spot, json.is_null() ? "is missing" : "is not a whole number");
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  if (!fits) refuse(spot, "is out of range");
  return json.get<T>();
}

template <class E>
E decode_word(const Json& json, const Spot& spot) {
  if (!json.is_string()) refuse(spot, json.is_null() ? "is missing" : "is not a word");
  const auto& text = json.get_ref<const std::string&>();
  for (const auto& word : vocabulary<E>)
    if (report_word(word.value) == text) return word.value;
  refuse(spot, fmt::format("'{}' is not a word that this version knows", text));
}

Place decode_place(const Json& json, const Spot& spot) {
  if (!json.is_string()) refuse(spot, "is not a place");
  const auto& text = json.get_ref<const std::string&>();
  const auto place = place_of(text);
  if (!place) refuse(spot, fmt::format("'{}' is not a place that this version knows", text));
  return *place;
}

template <class T>
void decode(const Json& json, const Spot& spot, T&& field) {
  using Field = std::remove_cvref_t<T>;
  const auto want = [&](bool right, std::string_view what) {
    if (!right) refuse(spot, json.is_null() ? "is missing" : fmt::format("is not {}", what));
  };
  if constexpr (std::same_as<Field, bool>) {
    want(json.is_boolean(), "true or false");
    field = json.get<bool>();
  } else if constexpr (std::is_integral_v<Field>) {
    field = decode_integer<Field>(json, spot);
  } else if constexpr (std::is_floating_point_v<Field>) {
    want(json.is_number(), "a number");
    field = json.get<double>();
    if (field < 0) refuse(spot, "is negative");
  } else if constexpr (std::is_enum_v<Field>) {
    field = decode_word<Field>(json, spot);
  } else if constexpr (std::same_as<Field, Place>) {
    field = decode_place(json, spot);
  } else if constexpr (std::same_as<Field, std::string>) {
    want(json.is_string(), "a text");
    field = json.get<std::string>();
  } else if constexpr (std::same_as<Field, Texts>) {
    want(json.is_object(), "an object");
    for (const auto& [key, value] : json.items()) decode(value, Spot{&spot, key}, field[key]);
  } else if constexpr (is_a<Field, Maybe>) {
    if (json.is_null())
      field.value = field.absent;
    else
      decode(json, spot, field.value);
  } else if constexpr (is_a<Field, std::optional>) {
    if (json.is_null())
      field.reset();
    else
      decode(json, spot, field.emplace());
  } else if constexpr (is_a<Field, std::vector>) {
    want(json.is_array(), "a list");
    field.assign(json.size(), {});
    for (std::size_t i = 0; i < json.size(); ++i) decode(json[i], Spot{&spot, {}, i}, field[i]);
  } else {
    want(json.is_object(), "an object");
    if constexpr (is_a<Field, Group>)
      field.fields(Reader{json, spot});
    else
      describe(field, Reader{json, spot});
  }
}

void refuse_if(bool wrong, const std::string& what) {
  if (wrong) throw Error(ErrorKind::usage, what);
}

// RFC 3339 in UTC, as rounds are ordered by: "2025-11-30T12:00:00.250Z".
bool is_time(std::string_view text) {
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() <= shape.size() || !text.ends_with('Z')) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'd' ? !is_digit(text[i]) : text[i] != shape[i]) return false;
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + digits, value);
    return value;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const int days = month == 2 ? 28 + leap : 30 + (month + month / 8) % 2;
  const std::string_view fraction = text.substr(shape.size(), text.size() - shape.size() - 1);
  return month >= 1 && month <= 12 && day >= 1 && day <= days && number(11, 2) < 24 &&
         number(14, 2) < 60 && number(17, 2) <= 60 &&
         (fraction.empty() || (fraction.size() > 1 && fraction[0] == '.' &&
                               std::ranges::all_of(fraction.substr(1), is_digit)));
}

void check_case(const Case& what, std::size_t devices, const std::string& place) {
  for (std::size_t g = 0; g < what.gpus.size(); ++g)
    refuse_if(what.gpus[g] < 0 || std::cmp_greater_equal(what.gpus[g], devices),
              fmt::format("{}/gpus/{}: names no device", place, g));
  const std::pair<const char*, int> counts[] = {{"split", what.split},
                                                {"access", what.access},
                                                {"batch", what.batch},
                                                {"prefetch_repeats", what.prefetch_repeats}};
  for (const auto& [key, count] : counts)
    refuse_if(count < 0, fmt::format("{}/{}: is negative", place, key));
}

void check_result(const CaseResult& result, std::size_t devices, const std::string& place) {
  check_case(result.what, devices, place + "/case");
  refuse_if(result.samples < 0 || std::cmp_less(result.samples, result.samples_ns.size()),
            place + "/samples: is less than what is stored");
  for (std::size_t s = 0; s < result.samples_ns.size(); ++s)
    refuse_if(!(result.samples_ns[s] > 0),
              fmt::format("{}/samples_ns/{}: is not above 0", place, s));
  refuse_if(result.verification.passes < 0, place + "/verification/passes: is negative");
  refuse_if(result.verification.passes_checked < 0,
            place + "/verification/passes_checked: is negative");
  for (std::size_t d = 0; d < result.per_device.size(); ++d) {
    const DeviceResult& part = result.per_device[d];
    refuse_if(part.index < 0 || std::cmp_greater_equal(part.index, devices),
              fmt::format("{}/per_device/{}/index: names no device", place, d));
    refuse_if(part.slices < 0, fmt::format("{}/per_device/{}/slices: is negative", place, d));
    refuse_if(part.event_samples < 0,
              fmt::format("{}/per_device/{}/event_samples: is negative", place, d));
  }
}

// Renderers look for the case of each GPU, and rank GPUs by their ratios.
void check_fleet(const Fleet& fleet) {
  for (std::size_t c = 0; c < fleet.cases.size(); ++c) {
    check_case(fleet.cases[c].what, std::numeric_limits<std::size_t>::max(),  // of any node
               fmt::format("/distribution/{}/case", c));
    refuse_if(!(fleet.cases[c].median_ns > 0),
              fmt::format("/distribution/{}/median_ns: is not above 0", c));
  }
  std::map<std::pair<std::string_view, std::string_view>, const FleetCase*> known;
  for (const FleetCase& one : fleet.cases) known[{one.key, one.name}] = &one;
  const auto case_of = [&](const auto& of) {
    const auto found = known.find({of.key, of.name});
    return found == known.end() ? nullptr : found->second;
  };
  for (std::size_t g = 0; g < fleet.gpus.size(); ++g) {
    const FleetGpu& gpu = fleet.gpus[g];
    const auto refuse_gpu_if = [&](bool wrong, std::string_view what) {
      if (wrong) refuse_if(true, fmt::format("/gpus/{}{}", g, what));
    };
    const FleetCase* one = case_of(gpu);
    refuse_gpu_if(!one, "/key: names no case of the distribution with GPUs of this name");
    refuse_gpu_if(!std::isfinite(gpu.ratio * one->median_ns), "/ratio: is out of range");
    refuse_gpu_if(gpu.rank.value_or(0) < 0, "/rank: is negative");
    refuse_gpu_if(gpu.ordinal < 0, "/ordinal: is negative");
    refuse_gpu_if(gpu.rounds < 1, "/rounds: is not above 0");
    refuse_gpu_if(!(gpu.median_ns > 0), "/median_ns: is not above 0");
  }
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    const FleetNode& node = fleet.nodes[n];
    refuse_if(std::ranges::any_of(node.ranks, [](int rank) { return rank < 0; }),
              fmt::format("/nodes/{}/ranks: one is negative", n));
    for (std::size_t c = 0; c < node.cases.size(); ++c)
      if (!case_of(node.cases[c]))
        refuse_if(true,
                  fmt::format("/nodes/{}/cases/{}/key: names no case of the distribution", n, c));
  }
  for (std::size_t m = 0; m < fleet.missing.size(); ++m)
    refuse_if(fleet.missing[m].rank < 0, fmt::format("/missing/{}/rank: is negative", m));
}

// What renderers and comparisons rely on, beyond the type of each field.
void check_sense(const Report& report) {
  const std::size_t devices = report.machine.devices.size();
  for (const auto& [key, time] : {std::pair{"started", &report.started}, {"ended", &report.ended}})
    refuse_if(!time->empty() && !is_time(*time),
              fmt::format("/{}: '{}' is no time in UTC", key, *time));
  const Host& host = report.machine.host;
  refuse_if(host.rank.value_or(0) < 0 || host.ranks.value_or(0) < 0,
            "/host: a rank or the number of ranks is negative");
  for (std::size_t d = 0; d < devices; ++d)
    refuse_if(!std::cmp_equal(report.machine.devices[d].ordinal, d),
              fmt::format("/devices/{}/ordinal: is not {}", d, d));
  for (std::size_t c = 0; c < report.cases.size(); ++c)
    check_result(report.cases[c], devices, fmt::format("/cases/{}", c));
  for (std::size_t c = 0; c < report.plan.size(); ++c)
    check_case(report.plan[c].what, devices, fmt::format("/cases/{}/case", c));
  if (report.fleet) check_fleet(*report.fleet);
  if (!report.comparison) return;
  for (std::size_t r = 0; r < report.comparison->rows.size(); ++r)
    check_case(report.comparison->rows[r].what, devices, fmt::format("/rows/{}/case", r));
}

Report decode_report(const Json& json) {
  const Spot root;
  const auto schema = json.is_object() ? json.find("schema") : json.end();
  const bool ours = json.is_object() && schema != json.end() && schema->is_number_integer() &&
                    json.contains("tool") && json["tool"].is_object() &&
                    json["tool"].value("name", Json()) == "mgpu";
  if (!ours) throw Error(ErrorKind::usage, "not a result of mgpu");
  const int version = decode_integer<int>(*schema, Spot{&root, "schema"});
  if (version < 1)
    throw Error(ErrorKind::usage, fmt::format("/schema: there is no schema {}", version));
  if (version > schema_version)
    throw Error(
        ErrorKind::usage,
        fmt::format(
            "written by a newer mgpu (schema {}, and this one reads up to {}): use that version",
            version, schema_version));
  Report report;
  decode(json, root, report);
  check_sense(report);
  return report;
}

Json parse(std::string_view text) {
  return Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
    if (depth > max_depth)
      throw Error(ErrorKind::usage, fmt::format("nested deeper than {} levels", max_depth));
    return true;
  });
}

/// Where in a text a number stands that no double holds; the parser tells nothing but its text.
std::size_t place_of_number(std::string_view text, std::string_view message) {
  const std::size_t quote = message.find('\'');
  if (quote == message.npos) return 0;
  const std::string_view number = message.substr(quote + 1, message.rfind('\'') - quote - 1);
  const std::size_t found = text.find(number);
  return found == text.npos ? 0 : found + 1;
}

/// Of a byte of a text, both counted from 1.
std::pair<std::size_t, std::size_t> line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line_start = before.rfind('\n') + 1;  // 0 where there is none
  return {static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1,
          std::max(before.size() - line_start, std::size_t{1})};
}

/// `line` is the number of the one line that `text` is, in a file of several documents.
Report read_document(std::string_view text, const std::string& path,
                     std::optional<std::size_t> line = std::nullopt) {
  const std::string place = line ? fmt::format("{}:{}", path, *line) : path;
  const auto refused_at = [&](std::size_t byte, std::string_view why) {
    const auto [row, column] = line_and_column(text, byte);
    return Error(ErrorKind::usage,
                 fmt::format("{}:{}:{}: {}", path, line.value_or(1) + row - 1, column, why));
  };
  // To the parser a NUL ends the text, whatever follows.
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    throw refused_at(nul + 1, "not JSON");
  try {
    return decode_report(parse(text));
  } catch (const Json::parse_error& error) {
    throw refused_at(error.byte,
                     error.byte > text.size() ? "the document is cut off here" : "not JSON");
  } catch (const Json::exception& error) {
    throw refused_at(place_of_number(text, error.what()), "a number beyond what a double holds");
  } catch (const Error& error) {
    throw Error(error.kind, fmt::format("{}: {}", place, error.what()));
  }
}

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == text.npos;
}

}  // namespace

std::vector<Report> read_reports(std::string_view text, const std::string& path,
                                 std::vector<std::string>& notes) {
  if (blank(text)) throw Error(ErrorKind::usage, path + ": the file is empty");
  // JSON Lines: the first line is a whole document. In an indented document it is a brace.
  const std::string_view first = text.substr(0, text.find('\n'));
  if (!Json::accept(first)) return {read_document(text, path)};

  std::vector<Report> reports;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (blank(one)) continue;
    if (end == one.npos && !reports.empty() && !Json::accept(one)) {
      notes.push_back(fmt::format("{}:{}: the last line is cut off and was ignored", path, line));
      continue;
    }
    reports.push_back(read_document(one, path, line));
  }
  return reports;
}

}  // namespace mgpu
