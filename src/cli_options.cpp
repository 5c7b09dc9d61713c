// SPDX-License-Identifier: MIT
#include "cli_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace mgpu {
namespace {

constexpr std::size_t width = 80, help_column = 26;

/// Letters to insert, drop or replace, and neighbours to swap.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> last, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (a[i] == b[j] ? 0 : 1), next[j] + 1, row[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        next[j + 1] = std::min(next[j + 1], last[j - 1] + 1);
    }
    last = std::exchange(row, next);
  }
  return row.back();
}

/// `text` from column `help_column` on, in as many lines as that takes.
std::string wrapped(std::string_view text) {
  std::string out;
  std::size_t used = help_column;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (used > help_column && used + 1 + word.size() > width) {
      out += "\n" + std::string(help_column, ' ');
      used = help_column;
    } else if (used > help_column) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out + "\n";
}

}  // namespace

std::string did_you_mean(std::string_view text, std::span<const std::string> candidates,
                         const std::string& otherwise) {
  const std::string* nearest = nullptr;
  std::size_t least = text.size() < 4 ? 2 : 3;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < std::min(least, candidate.size())) {
      least = distance;
      nearest = &candidate;
    }
  }
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : otherwise;
}

Options::Entry& Options::add(Names names, std::string help) {
  Entry& entry = entries_.emplace_back();
  entry.info.names = std::move(names);
  entry.info.help = std::move(help);
  entry.group = group_;
  return entry;
}

void Options::flag(Names names, bool& field, std::string help) {
  add(std::move(names), std::move(help)).flag = &field;
}

void Options::value(Names names, std::string shape, std::string help, Apply apply, bool repeats) {
  Entry& entry = add(std::move(names), std::move(help));
  entry.info.takes_value = true;
  entry.shape = std::move(shape);
  entry.apply = std::move(apply);
  entry.repeats = repeats;
}

void Options::words(const std::string& option, Names words, std::string help, Apply apply) {
  value({option}, fmt::format("{}", fmt::join(words, "|")), std::move(help),
        [option, words, apply = std::move(apply)](const std::string& text) {
          if (std::ranges::find(words, text) == words.end())
            throw usage_error("{} '{}' is none of {}{}", option, text, fmt::join(words, ", "),
                              did_you_mean(text, words, ""));
          apply(text);
        });
  entries_.back().info.words = std::move(words);
}

void Options::optional_words(const std::string& option, Names given, std::string help,
                             Apply apply) {
  words(option, std::move(given), std::move(help), std::move(apply));
  Entry& entry = entries_.back();
  entry.info.takes_value = false;
  entry.implied = entry.info.words.front();
  entry.shape = fmt::format("[={}]", entry.shape);
}

void Options::number(const std::string& option, double& field, bool zero_allowed,
                     std::string help) {
  help += fmt::format(" (default: {:g})", field);
  value({option}, "S", std::move(help), [&field, option, zero_allowed](const std::string& text) {
    field = parse_number(text, option, zero_allowed);
  });
}

void Options::many(std::string_view option, Split split, std::function<void()> taken) {
  Entry& entry = *std::ranges::find_if(
      entries_, [&](const Entry& one) { return one.info.names.back() == option; });
  entry.is_list = split != nullptr;
  entry.repeats = !entry.is_list;
  if (entry.repeats) entry.info.help += "; may be repeated";
  entry.apply = [apply = std::move(entry.apply), split = std::move(split),
                 taken = std::move(taken)](const std::string& text) {
    for (const std::string& value : split ? split(text) : Names{text}) {
      apply(value);
      taken();
    }
  };
}

const Options::Entry* Options::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (std::ranges::find(entry.info.names, name) != entry.info.names.end()) return &entry;
  return nullptr;
}

// CLI11 looks for the value of "--size=" in the next argument, and its versions differ on "-1"
// behind "--size": here each value is tied to its option, but for an empty one, which stands alone.
std::vector<std::string> Options::unambiguous(std::span<const std::string> args) const {
  const auto option_of = [](std::string_view arg) { return arg.substr(0, arg.find('=')); };
  std::vector<std::string> out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string option(option_of(args[i]));
    const bool attached = option.size() < args[i].size();
    const Entry* entry = find(option);
    if (!entry || (entry->flag != nullptr && !attached)) {
      out.push_back(args[i]);
      continue;
    }
    if (entry->flag != nullptr) throw usage_error("{} takes no value, as in '{}'", option, args[i]);
    if (!attached && !entry->implied.empty()) {
      out.push_back(fmt::format("{}={}", option, entry->implied));
      continue;
    }
    if (!attached && (i + 1 == args.size() || find(option_of(args[i + 1]))))
      throw usage_error("{} needs a value: {}", option, entry->shape);
    const std::string value = attached ? args[i].substr(option.size() + 1) : args[++i];
    const bool is_short = option.size() == 2;
    if (value.empty())
      out.insert(out.end(), {option, value});
    else
      out.push_back(fmt::format("{}{}{}", option, is_short ? "" : "=", value));
  }
  return out;
}

void Options::parse(std::span<const std::string> args) {
  CLI::App app("", command_);
  app.set_help_flag();
  app.allow_extras();
  for (Entry& entry : entries_) {
    const std::string names = fmt::format("{}", fmt::join(entry.info.names, ","));
    // Without the last call an option takes the arguments behind its value as well.
    if (entry.flag)
      app.add_flag(names, *entry.flag);
    else
      app.add_option(names, entry.given)->allow_extra_args(false);
  }
  const auto mark = std::ranges::find(args, "--");
  try {
    std::vector<std::string> reversed = unambiguous({args.begin(), mark});
    std::ranges::reverse(reversed);
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    throw usage_error("{}; see {} --help", error.what(), command_);
  }
  // Not positionals to CLI11, which takes "[a]" for a list of values.
  for (const std::string& word : app.remaining())
    (word.size() > 1 && word[0] == '-' ? unknown_ : operands_).push_back(word);
  if (mark != args.end()) operands_.insert(operands_.end(), mark + 1, args.end());
}

void Options::apply() const {
  if (!unknown_.empty()) {
    Names known;
    for (const Entry& entry : entries_) known.push_back(entry.info.names.back());
    const std::string option = unknown_.front().substr(0, unknown_.front().find('='));
    if (const auto refused = refused_.find(option); refused != refused_.end())
      throw usage_error("{} {}", option, refused->second);
    throw usage_error("unknown option '{}' of {}{}", option, command_,
                      did_you_mean(option, known, fmt::format("; see {} --help", command_)));
  }
  if (!files_ && !operands_.empty()) {
    for (const Entry& entry : entries_)
      if (!entry.given.empty() && !entry.implied.empty() &&
          std::ranges::find(entry.info.words, operands_.front()) != entry.info.words.end())
        throw usage_error("unexpected argument '{}'; write {}={}", operands_.front(),
                          entry.info.names.back(), operands_.front());
    throw usage_error("unexpected argument '{}'; see {} --help", operands_.front(), command_);
  }
  if (files_) *files_ = operands_;
  for (const Entry& entry : entries_) {
    if (entry.given.size() > 1 && !entry.repeats)
      throw usage_error("{} is given {} times; give it once", entry.info.names.back(),
                        entry.given.size());
    for (const std::string& text : entry.given) entry.apply(text);
  }
}

std::string Options::help(std::string_view before, std::string_view examples) const {
  const bool has_values = std::ranges::any_of(entries_, [](auto& e) { return !e.flag; });
  std::string out =
      fmt::format("Usage: {}{} [OPTION]...{}\n\n{}\n{}", command_, has_values ? "" : " COMMAND",
                  files_ ? " " + files_shape_ : "", summary_, before);
  std::string_view group;
  for (const Entry& entry : entries_) {
    if (group != entry.group) out += fmt::format("\n{}:\n", group = entry.group);
    const Names& names = entry.info.names;
    std::string left =
        fmt::format("  {}{}", names.front().size() > 2 ? "    " : "", fmt::join(names, ", "));
    std::string text = entry.info.help;
    const std::string more = entry.is_list ? ",..." : "";
    if (left.size() + 1 + entry.shape.size() + more.size() <= width) {
      left += (entry.shape.empty() || !entry.implied.empty() ? "" : " ") + entry.shape + more;
    } else {
      left += " WORD" + more;
      text += fmt::format(": {}", fmt::join(entry.info.words, ", "));
    }
    const bool fits = left.size() + 2 <= help_column;
    out += left + (fits ? "" : "\n") + std::string(help_column - (fits ? left.size() : 0), ' ') +
           wrapped(text);
  }
  return out + fmt::format("\nExamples:\n{}", examples);
}

std::vector<OptionInfo> Options::info() const {
  std::vector<OptionInfo> all;
  for (const Entry& entry : entries_) all.push_back(entry.info);
  return all;
}

}  // namespace mgpu
