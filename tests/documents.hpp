// SPDX-License-Identifier: MIT
// Reads the documents of this repository, and finds the commands in them that a reader would type.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <utility>
#include <vector>

namespace mgpu {

inline const std::filesystem::path root = MGPU_SOURCE_DIR;

/// Empty where there is no such file.
inline std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

inline std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// What a shell prints, and its exit status.
inline std::pair<std::string, int> shell(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  const int status = pclose(pipe);
  return {out, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

inline bool installed(const std::string& program) {
  return shell("command -v " + program + " 2>&1").second == 0;
}

/// Lines as they are typed: continued ones joined, without comments.
inline std::vector<std::string> typed_lines(const std::vector<std::string>& lines) {
  std::vector<std::string> typed;
  std::string line;
  for (const std::string& part : lines) {
    line += part;
    if (line.ends_with('\\')) {
      line.back() = ' ';
      continue;
    }
    line = std::regex_replace(line, std::regex(R"((^|\s+)#.*)"), "");
    if (!split(line).empty()) typed.push_back(line);
    line.clear();
  }
  return typed;
}

/// The `mgpu` commands among lines as a user types them, also behind a launcher; what stands behind
/// pipes and redirections is cut off.
inline std::vector<std::string> typed_commands(const std::vector<std::string>& lines) {
  static const std::regex variable(R"([A-Z_]+=\S*)"), launcher("mpirun|srun"), own(R"(-\w+|\d+)");
  std::vector<std::string> commands;
  for (const std::string& line : typed_lines(lines)) {
    for (const std::string& piece : lines_of(
             std::regex_replace(std::regex_replace(line, std::regex(R"(\s\d?>.*?(?=\||$))"), ""),
                                std::regex(R"(\||&&|;)"), "\n"))) {
      auto words = split(piece);
      const auto drop_while = [&](const std::regex& pattern) {
        while (!words.empty() && std::regex_match(words[0], pattern)) words.erase(words.begin());
      };
      const bool prompt = !words.empty() && words[0] == "$";
      if (prompt) words.erase(words.begin());
      drop_while(variable);
      if (!words.empty() && std::regex_match(words[0], launcher)) {
        words.erase(words.begin());
        drop_while(own);
      }
      if (words.empty() || std::filesystem::path(words[0]).filename() != "mgpu") continue;
      // "mgpu copy: 635 samples" is what a command printed.
      if (!prompt && words.size() > 1 && words[1].ends_with(':')) continue;
      words[0] = "mgpu";
      commands.push_back(joined(words));
    }
  }
  return commands;
}

/// The lines of all fenced blocks of a Markdown text, or of those in one language alone.
inline std::vector<std::string> fenced_lines(const std::string& text,
                                             const std::string& language = "") {
  std::vector<std::string> code;
  bool fenced = false, wanted = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("```")) {
      fenced = !fenced;
      wanted = fenced && (language.empty() || line == "```" + language);
    } else if (wanted) {
      code.push_back(line);
    }
  }
  return code;
}

}  // namespace mgpu
