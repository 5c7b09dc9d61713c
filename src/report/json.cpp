// SPDX-License-Identifier: MIT
#include "report/document.hpp"
#include "report/renderers.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace mgpu {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::map<std::string, std::string>;

template <class T>
Json encode(const T& value);

/// Visits the fields of a struct and makes an object of them.
struct Writer {
  Json object = Json::object();

  template <class T>
  void operator()(const char* key, const T& field) {
    // A text of our structs is empty where there is none; an element of a list may well be empty.
    if constexpr (std::same_as<T, std::string>)
      object[key] = field.empty() ? Json() : encode(field);
    else
      object[key] = encode(field);
  }
};

// Whole numbers without a fraction, as most times are; every other double in its shortest exact
// form. JSON has no infinity.
Json encode_number(double value) {
  constexpr double exact = 9007199254740992;  // 2^53
  if (!std::isfinite(value)) return Json();
  if (std::abs(value) < exact && std::trunc(value) == value)
    return static_cast<std::int64_t>(value);
  return value;
}

template <class T>
Json encode(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return encode_number(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string> ||
                       std::same_as<T, Texts>) {
    return value;
  } else if constexpr (std::is_enum_v<T> || std::same_as<T, Place>) {
    return field_text(value);
  } else if constexpr (is_a<T, Derived>) {
    return encode(value.value);
  } else if constexpr (is_a<T, Maybe>) {
    return value.present ? encode(value.value) : Json();
  } else if constexpr (is_a<T, std::optional>) {
    return value ? encode(*value) : Json();
  } else if constexpr (is_a<T, std::vector>) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(encode(item));
    return array;
  } else if constexpr (is_a<T, Group>) {
    Writer writer;
    value.fields(writer);
    return std::move(writer.object);
  } else {
    Writer writer;
    describe(value, writer);
    return std::move(writer.object);
  }
}

// An argument or a name may hold any bytes; a report must still come out.
std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Indented, but for lists of plain values: ten thousand samples are one line.
void write_pretty(const Json& json, std::size_t depth, std::string& out) {
  const bool nested = json.is_structured() && !json.empty() &&
                      (json.is_object() || std::ranges::any_of(json, [](const Json& item) {
                         return item.is_structured();
                       }));
  if (!nested) {
    out += compact(json);
    return;
  }
  const auto line_feed = [&](std::size_t indent) { out += '\n' + std::string(2 * indent, ' '); };
  const char* separator = "";
  out += json.is_object() ? '{' : '[';
  for (const auto& [key, value] : json.items()) {
    out += separator;
    separator = ",";
    line_feed(depth + 1);
    if (json.is_object()) out += compact(Json(key)) + ": ";
    write_pretty(value, depth + 1, out);
  }
  line_feed(depth);
  out += json.is_object() ? '}' : ']';
}

}  // namespace

std::string render_json(const Report& report, const RenderOptions&) {
  std::string out;
  write_pretty(encode(report), 0, out);
  return out + '\n';
}

std::string render_json_lines(const Report& report, const RenderOptions&) {
  Json document = encode(report);
  const auto cases = document.find("cases");
  if (cases == document.end()) return compact(document) + '\n';
  std::string out;
  const Json all = *cases;
  for (const Json& one : all) {
    *cases = Json::array({one});
    out += compact(document) + '\n';
  }
  return out;
}

}  // namespace mgpu
