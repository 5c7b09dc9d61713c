// SPDX-License-Identifier: MIT
// The commands and options there are, and the words of a text, as sets to compare. Reads no file.
#pragma once

#include "cli.hpp"

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace mgpu {

using Words = std::set<std::string>;

inline Words set_of(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

/// Every match of the first group.
inline Words all_matches(const std::string& text, const std::regex& pattern) {
  Words found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.insert((*at)[1]);
  return found;
}

inline const std::regex long_option{R"((?:^|[^-\w])(--[a-z][a-z-]*[a-z]))"};

inline Words names_of(const CommandInfo& command) {
  Words names;
  for (const OptionInfo& option : command.options)
    names.insert(option.names.begin(), option.names.end());
  return names;
}

inline Words all_names() {
  Words names;
  for (const CommandInfo& command : option_tree()) names.merge(names_of(command));
  return names;
}

inline std::vector<CommandInfo> commands() {
  auto tree = option_tree();
  tree.erase(tree.begin());
  return tree;
}

}  // namespace mgpu
