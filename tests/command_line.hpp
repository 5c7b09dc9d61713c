// SPDX-License-Identifier: MIT
// Command lines as text, for the tests of what they mean.
#pragma once

#include "cli.hpp"
#include "model/error.hpp"

#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

namespace mgpu {

using Args = std::vector<std::string>;

/// At blanks; '' is an empty argument.
inline Args split(const std::string& line) {
  Args args;
  std::istringstream in(line);
  for (std::string word; in >> word;) args.push_back(word == "''" ? "" : word);
  return args;
}

inline Request request(const Args& args) {
  return std::get<Request>(parse_request(args));
}
inline Request request(const std::string& line) {
  return request(split(line));
}
inline std::string immediate(const std::string& line) {
  return std::get<Immediate>(parse_request(split(line))).text;
}

/// The message of a usage error; nothing where the line is accepted or another error comes.
inline std::optional<std::string> refusal(const Args& args) {
  try {
    parse_request(args);
  } catch (const Error& error) {
    if (error.kind == ErrorKind::usage) return error.what();
  }
  return std::nullopt;
}
inline std::optional<std::string> refusal(const std::string& line) {
  return refusal(split(line));
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace mgpu
