// SPDX-License-Identifier: MIT
// Whole command lines, an argument a line.
#include "cli.hpp"
#include "oracle.hpp"

#include <string>
#include <vector>

using namespace mgpu;

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> args = lines_of(text_of(data, size));
  std::variant<Request, Immediate> parsed;
  if (!taken([&] { parsed = parse_request(args); })) return 0;
  if (const auto* immediate = std::get_if<Immediate>(&parsed)) {
    require(!immediate->text.empty(), "help and version say something");
    return 0;
  }
  const Request& request = std::get<Request>(parsed);
  require(request.argv.size() == args.size() + 1, "a request keeps its command line");
  return 0;
}
