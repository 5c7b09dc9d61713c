// SPDX-License-Identifier: MIT
// argv -> Request: text to types, with no knowledge of the machine. The only room that knows CLI11.
#pragma once

#include "model/request.hpp"

#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mgpu {

/// Asked for help or the version: `text` for stdout, then exit 0.
struct Immediate {
  std::string text;
};

/// `args` without the program's name. Throws Error{usage} for anything wrong; its message names the
/// option and what to write instead. With no arguments at all: Error{usage} whose message is the
/// help.
std::variant<Request, Immediate> parse_request(std::span<const std::string> args);

struct OptionInfo {
  std::vector<std::string> names;  ///< "--size", "-o"
  std::vector<std::string> words;  ///< of a closed vocabulary, else empty
  bool takes_value = false;
  std::string help;
};
struct CommandInfo {
  std::string name;  ///< "" for mgpu itself
  std::string help;
  std::vector<OptionInfo> options;
};

/// Everything a man page and the completions must know.
std::vector<CommandInfo> option_tree();

}  // namespace mgpu
