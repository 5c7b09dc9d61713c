// SPDX-License-Identifier: MIT
// The options of one command: a table that is parsed, shown as help and listed. Knows no request.
#pragma once

#include "cli.hpp"
#include "model/error.hpp"
#include "model/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mgpu {

template <class... Args>
Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorKind::usage, fmt::format(format, std::forward<Args>(args)...)};
}

/// "; did you mean 'copy'?" where a candidate is near enough for a slip, else `otherwise`.
std::string did_you_mean(std::string_view text, std::span<const std::string> candidates,
                         const std::string& otherwise);

/// Fields are bound by reference and must outlive this.
class Options {
 public:
  using Names = std::vector<std::string>;  ///< a short one first
  using Apply = std::function<void(const std::string&)>;
  using Split = std::function<Names(const std::string&)>;

  /// `command` as the user writes it: "mgpu copy".
  Options(std::string command, std::string summary)
      : command_(std::move(command)), summary_(std::move(summary)) {}
  /// Those added from here on belong under this title.
  void group(std::string title) { group_ = std::move(title); }
  void flag(Names names, bool& field, std::string help);
  void value(Names names, std::string shape, std::string help, Apply apply, bool repeats = false);
  /// One of `words`, which `apply` gets.
  void words(const std::string& option, Names words, std::string help, Apply apply);
  /// One of `words`, taken behind = alone; `apply` gets the first one where none is given.
  void optional_words(const std::string& option, Names words, std::string help, Apply apply);
  /// A word of E's vocabulary; `Field` is E, whose value is the default, or an optional<E>.
  template <class E, class Field>
  void word(const std::string& option, Field& field, std::string help) {
    Names names;
    for (const auto& row : vocabulary<E>) names.emplace_back(row.name);
    if constexpr (std::same_as<Field, E>) help += fmt::format(" (default: {})", name(field));
    words(option, std::move(names), std::move(help),
          [&field](const std::string& text) { field = *parse_word<E>(text); });
  }
  /// A whole number in [low, high]; an integer's value is the default, an optional has none.
  template <class Field>
  void count(std::string option, Field& field, std::int64_t low, std::int64_t high,
             std::string help) {
    using Number = std::conditional_t<std::same_as<Field, std::int64_t>, std::int64_t, int>;
    if constexpr (std::integral<Field>) help += fmt::format(" (default: {})", field);
    value({option}, "N", std::move(help), [&field, option, low, high](const std::string& text) {
      field = static_cast<Number>(parse_count(text, option, low, high));
    });
  }
  void number(const std::string& option, double& field, bool zero_allowed, std::string help);
  void files(std::vector<std::string>& field, std::string shape) {
    files_ = &field;
    files_shape_ = std::move(shape);
  }
  /// An option that is there takes many values: `split` cuts a list into them, without it the
  /// option is repeated instead. `taken` follows each value, once that is applied.
  void many(std::string_view option, Split split, std::function<void()> taken);
  /// An option of other commands that this one refuses: "--timeline <why>".
  void refuse(std::string option, std::string why) { refused_.emplace(option, why); }

  /// Sets flags; values and files wait for `apply`: --help works beside a wrong one. May throw
  /// Error{usage}, as may `apply`, which also refuses what `parse` did not know.
  void parse(std::span<const std::string> args);
  void apply() const;

  /// Usage, summary, `before`, the options and `examples`, within 80 columns.
  std::string help(std::string_view before, std::string_view examples) const;
  std::vector<OptionInfo> info() const;

 private:
  struct Entry {
    OptionInfo info;
    std::string group, shape;
    bool* flag = nullptr;
    Apply apply;
    bool repeats = false, is_list = false;
    std::string implied;  // its value where none is given
    std::vector<std::string> given;
  };

  Entry& add(Names names, std::string help);
  const Entry* find(std::string_view name) const;
  std::vector<std::string> unambiguous(std::span<const std::string> args) const;

  std::string command_, summary_, group_, files_shape_;
  std::deque<Entry> entries_;
  std::map<std::string, std::string> refused_;
  std::vector<std::string>* files_ = nullptr;
  std::vector<std::string> operands_, unknown_;
};

}  // namespace mgpu
