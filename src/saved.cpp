// SPDX-License-Identifier: MIT
#include "saved.hpp"

#include "report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace mgpu {
namespace {

bool same_devices(const Machine& a, const Machine& b) {
  return a.host.name == b.host.name &&
         std::ranges::equal(a.devices, b.devices, [](const Device& x, const Device& y) {
           return x.uuid == y.uuid && x.name == y.name;
         });
}

}  // namespace

std::string read_file(const std::string& path, const Console& console) {
  if (path == "-") return console.in();
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> block;
  while (file.read(block.data(), block.size()) || file.gcount() > 0)
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  // A directory opens and fails at the first read.
  if (!file.is_open() || file.bad())
    throw Error(ErrorKind::usage,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

// What a killed run left behind the last line feed is not read: the next line takes its place, so
// it must be the beginning of a line of ours.
std::vector<Report> saved_lines(const std::string& path, const Console& console) {
  constexpr std::string_view ours = R"({"schema":)";
  const std::string text = read_file(path, console);
  const std::size_t whole = text.rfind('\n') + 1;  // 0 where there is none
  const std::string_view fragment = std::string_view(text).substr(whole);
  if (!fragment.starts_with(ours) && !ours.starts_with(fragment))
    throw Error(ErrorKind::usage,
                fmt::format("{}: its end is no result of mgpu, name another file", path));
  std::vector<std::string> notes;
  if (whole == 0) return {};
  return read_reports(std::string_view(text).substr(0, whole), path, notes);
}

std::vector<Report> saved_trials(const std::string& path, const Console& console,
                                 std::vector<std::string>& notes) {
  std::vector<Report> documents = read_reports(read_file(path, console), path, notes);
  for (const Report& document : documents)
    if (document.kind != ReportKind::trials)
      throw Error(ErrorKind::usage,
                  fmt::format("{}: holds a {}, no trials: name what mgpu copy or sweep wrote", path,
                              name(document.kind)));
  return documents;
}

std::vector<Report> merged(std::vector<Report> documents) {
  std::vector<Report> reports;
  for (Report& document : documents) {
    const bool joins = !reports.empty() && document.kind == ReportKind::trials &&
                       reports.back().kind == ReportKind::trials &&
                       same_devices(reports.back().machine, document.machine);
    if (!joins) {
      reports.push_back(std::move(document));
      continue;
    }
    Report& whole = reports.back();
    for (CaseResult& result : document.cases) whole.cases.push_back(std::move(result));
    whole.ended = document.ended;
    whole.complete = whole.complete && document.complete;
    whole.exit_code = graver(whole.exit_code, document.exit_code);
    if (!whole.error) whole.error = document.error;
  }
  return reports;
}

}  // namespace mgpu
