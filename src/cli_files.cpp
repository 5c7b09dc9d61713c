// SPDX-License-Identifier: MIT
#include "cli_files.hpp"

#include "cli_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

namespace mgpu {
namespace {

std::string extension(Format format) {
  if (format == Format::text) return ".txt";
  if (format == Format::markdown) return ".md";
  return "." + std::string(name(format));
}

}  // namespace

std::vector<Format> formats(Writes writes) {
  const auto fits = [writes](Format format) {
    if (is_for_stdout(format) || writes == Writes::anything) return true;
    switch (writes) {
      case Writes::reports_and_tests:
        return format == Format::xml;
      case Writes::reports_and_charts:
        return format != Format::dot;
      case Writes::reports_and_graphs:
        return format == Format::dot || format == Format::svg;
      default:
        return false;
    }
  };
  std::vector<Format> all;
  for (const auto& word : vocabulary<Format>)
    if (fits(word.value)) all.push_back(word.value);
  return all;
}

OutputSpec parse_output(const std::string& text, Writes writes) {
  const std::vector<Format> suitable = formats(writes);
  const std::size_t colon = text.find(':');
  const auto named = parse_word<Format>(std::string_view(text).substr(0, colon));
  std::vector<std::string> known;
  if (named && colon != std::string::npos) {
    const std::string path = text.substr(colon + 1);
    if (path.empty() || path == "-")
      throw usage_error("--output '{}' names no file; write {}:FILE", text, name(*named));
    if (std::ranges::find(suitable, *named) != suitable.end()) return {*named, path};
  }
  const std::string found = std::filesystem::path(text).extension().string();
  for (const Format format : suitable) {
    known.push_back(extension(format));
    if (!named && known.back() == found) return {format, text};
  }
  throw usage_error("--output '{}' says no format of this report; end it in {}, or write json:FILE",
                    text, fmt::join(known, " "));
}

std::string parse_resume(const std::string& text) {
  if (std::filesystem::path(text).extension() != extension(Format::jsonl))
    throw usage_error("--resume '{}' is no file of JSON Lines; end it in .jsonl", text);
  return text;
}

std::string parse_baseline(const std::string& text) {
  if (text.empty()) throw usage_error("--baseline '' names no file; write --baseline run.json");
  return text;
}

std::string parse_exclude(const std::string& text) {
  if (text.empty() || text == "-")
    throw usage_error("--exclude-file '{}' names no file; write --exclude-file slow.txt", text);
  return text;
}

void settle_files(Request& request) {
  const auto plain = [](const std::string& path) {
    return std::filesystem::path(path).lexically_normal().string();
  };
  std::set<std::string> inputs, outputs;
  if (!request.baseline.empty()) inputs.insert(plain(request.baseline));
  if (!request.machine_file.empty()) inputs.insert(plain(request.machine_file));
  for (const std::string& file : request.files)
    if (!inputs.insert(plain(file)).second && file == "-")
      throw usage_error("stdin (-) can be read only once");
  for (const OutputSpec& output : request.outputs) {
    if (inputs.contains(plain(output.path)))
      throw usage_error("--output '{}' is an input as well; write another file", output.path);
    if (!outputs.insert(plain(output.path)).second)
      throw usage_error("--output '{}' is given twice", output.path);
  }
  const auto reads = [&](const std::string& path) {
    return !path.empty() && inputs.contains(plain(path));
  };
  if (reads(request.resume) || reads(request.timeline))
    throw usage_error("--baseline '{}' would be written as well; write another file",
                      request.baseline);
  if (!request.resume.empty() && outputs.contains(plain(request.resume)))
    std::erase_if(request.outputs, [&](const OutputSpec& output) {
      if (plain(output.path) != plain(request.resume)) return false;
      if (output.format != Format::jsonl)
        throw usage_error("--output '{}' is --resume's file, of JSON Lines; write another file",
                          output.path);
      return true;
    });
  if (inputs.contains(plain(request.exclude_file)) || outputs.contains(plain(request.exclude_file)))
    throw usage_error("--exclude-file '{}' is an input or an --output as well; write another file",
                      request.exclude_file);
  if (request.timeline != "-" && outputs.contains(plain(request.timeline)))
    throw usage_error("--timeline '{}' is an --output as well; write another file",
                      request.timeline);
}

}  // namespace mgpu
