// SPDX-License-Identifier: MIT
#include "model/host_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdint>
#include <utility>

namespace mgpu {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes the digits that `text` begins with off it; leading zeros are dropped.
std::string_view take_number(std::string_view& text) {
  const auto length =
      static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
  std::string_view number = text.substr(0, length);
  text.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

/// A name before its number, and how many digits that has, 0 where it ends in none.
struct Stem {
  std::string_view text;
  std::size_t digits;
  bool operator==(const Stem&) const = default;
};

std::pair<Stem, std::uint64_t> split(std::string_view name) {
  constexpr std::size_t most_digits = 18;  // that 64 bits hold; those before belong to the stem
  std::size_t digits = 0;
  while (digits < std::min(name.size(), most_digits) && is_digit(name[name.size() - 1 - digits]))
    ++digits;
  const std::size_t start = name.size() - digits;
  std::uint64_t number = 0;
  std::from_chars(name.data() + start, name.data() + name.size(), number);
  return {{name.substr(0, start), digits}, number};
}

}  // namespace

bool HostOrder::operator()(std::string_view a, std::string_view b) const {
  std::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (is_digit(x.front()) && is_digit(y.front())) {
      const std::string_view p = take_number(x), q = take_number(y);
      if (p.size() != q.size()) return p.size() < q.size();
      if (p != q) return p < q;
    } else {
      if (x.front() != y.front()) return x.front() < y.front();
      x.remove_prefix(1);
      y.remove_prefix(1);
    }
  }
  if (x.empty() != y.empty()) return x.empty();
  return a < b;
}

std::string host_list(std::vector<std::string> names) {
  std::erase(names, "");
  std::ranges::sort(names, HostOrder{});
  names.erase(std::ranges::unique(names).begin(), names.end());

  // In the order of their first names; those of one stem need not be neighbours.
  struct Group {
    Stem stem;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  };
  std::vector<Group> groups;
  for (const std::string& name : names) {
    const auto [stem, number] = split(name);
    auto group = stem.digits > 0 ? std::ranges::find(groups, stem, &Group::stem) : groups.end();
    if (group == groups.end()) group = groups.insert(group, {stem, {}});
    if (!group->ranges.empty() && group->ranges.back().second + 1 == number)
      group->ranges.back().second = number;
    else
      group->ranges.emplace_back(number, number);
  }

  std::vector<std::string> texts;
  for (const auto& [stem, ranges] : groups) {
    if (stem.digits == 0) {
      texts.emplace_back(stem.text);
      continue;
    }
    std::vector<std::string> numbers;
    for (const auto& [first, last] : ranges) {
      numbers.push_back(fmt::format("{:0{}}", first, stem.digits));
      if (last > first) numbers.back() += fmt::format("-{:0{}}", last, stem.digits);
    }
    const bool one = ranges.size() == 1 && ranges[0].first == ranges[0].second;
    texts.push_back(one ? std::string(stem.text) + numbers[0]
                        : fmt::format("{}[{}]", stem.text, fmt::join(numbers, ",")));
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace mgpu
