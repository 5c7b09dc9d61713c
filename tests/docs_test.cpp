// SPDX-License-Identifier: MIT
// Man pages and README say what the program does: a word missing there, or one too many, fails
// here.
#include "cli.hpp"
#include "documents.hpp"
#include "model/error.hpp"
#include "model/result.hpp"
#include "model/runtimes.hpp"
#include "option_names.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <regex>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

/// A man page with its escapes undone: "\-" is "-".
std::string man_page(const std::string& command) {
  const std::string text =
      read(root / "man" / (command.empty() ? "mgpu.1" : "mgpu-" + command + ".1"));
  return std::regex_replace(text, std::regex(R"(\\-)"), "-");
}

std::string section(const std::string& page, const std::string& title) {
  const std::size_t begin = page.find("\n.Sh " + title + "\n");
  if (begin == std::string::npos) return "";
  return page.substr(begin + 1, page.find("\n.Sh ", begin + 1) - begin);
}

/// The items of a page that describe options: each with the names in its head, "--size", and all
/// its words.
std::vector<std::pair<Words, Words>> option_items(const std::string& page) {
  std::vector<std::pair<Words, Words>> items;
  bool inside = false;
  for (const std::string& line : lines_of(page)) {
    const auto words = split(line);
    if (line.starts_with(".It ") || line.starts_with(".El")) {
      inside = line.starts_with(".It Fl ");
      if (!inside) continue;
      items.emplace_back();
      for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == "Fl") items.back().first.insert("-" + words[i + 1]);
      for (std::size_t i = 3; i < words.size(); ++i)
        if (words[i - 1] == ",") items.back().first.insert("-" + words[i + (words[i] == "Fl")]);
    }
    if (inside) items.back().second.insert(words.begin(), words.end());
  }
  return items;
}

std::vector<std::string> man_examples(const std::string& page) {
  std::vector<std::string> code;
  for (const std::string& line : lines_of(section(page, "EXAMPLES")))
    if (line.starts_with(".Dl ")) code.push_back(line.substr(4));
  return typed_commands(code);
}

/// The words a section of a command's page lists, each with the line that tells it.
using Told = std::vector<std::pair<std::string, std::string>>;

Told described_words(const std::string& title, const std::string& command = "copy") {
  const auto lines = lines_of(section(man_page(command), title));
  Told told;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i)
    if (lines[i].starts_with(".It Li ")) told.emplace_back(lines[i].substr(7), lines[i + 1]);
  return told;
}

template <class E>
Told words_of() {
  Told told;
  for (const auto& word : vocabulary<E>) told.emplace_back(word.name, word.help);
  return told;
}

void check_parses(const std::string& command) {
  auto words = split(command);
  words.erase(words.begin());
  INFO(command);
  CHECK_NOTHROW(parse_request(words));
}

}  // namespace

TEST_CASE("each man page describes exactly the options of its command, with every word", "[docs]") {
  for (const CommandInfo& command : option_tree()) {
    INFO("mgpu " << command.name);
    const auto items = option_items(man_page(command.name));
    Words described;
    for (const auto& [names, words] : items) described.insert(names.begin(), names.end());
    CHECK(described == names_of(command));
    for (const OptionInfo& option : command.options) {
      const auto item = std::ranges::find_if(
          items, [&](const auto& one) { return one.first == set_of(option.names); });
      INFO(option.names.back());
      REQUIRE(item != items.end());
      for (const std::string& word : option.words) {
        INFO(word);
        CHECK(item->second.contains(word));
      }
    }
  }
}

TEST_CASE("each option named in a man page exists", "[docs]") {
  const Words known = all_names();
  for (const CommandInfo& command : option_tree()) {
    const std::string page = man_page(command.name);
    Words named = all_matches(page, long_option);
    for (const std::string& name : all_matches(page, std::regex(R"(\bFl (-?[a-zA-Z][a-z-]*))")))
      if (name != "hV") named.insert("-" + name);
    CHECK(named.size() > 3);
    for (const std::string& name : named) {
      INFO("mgpu " << command.name << ": " << name);
      CHECK(known.contains(name));
    }
  }
}

TEST_CASE("the table of exit codes in mgpu(1) is that of the errors", "[docs]") {
  const auto lines = lines_of(section(man_page(""), "EXIT STATUS"));
  std::vector<std::pair<std::string, std::string>> documented, expected;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i)
    if (std::regex_match(lines[i], std::regex(R"(\.It \d+ Li \w+)")))
      documented.emplace_back(lines[i].substr(4), lines[i + 1]);
  for (const auto& word : vocabulary<ErrorKind>)
    expected.emplace_back(std::to_string(exit_code(word.value)) + " Li " + std::string(word.name),
                          word.help);
  CHECK(documented == expected);
}

TEST_CASE("mgpu-copy(1) tells every cause and every mark, and no other", "[docs]") {
  CHECK(described_words("CAUSES") == words_of<CauseKind>());
  CHECK(described_words("MARKS") == words_of<Mark>());
}

TEST_CASE("mgpu-sweep(1) tells every preset, and no other", "[docs]") {
  CHECK(described_words("PRESETS", "sweep") == words_of<Preset>());
}

TEST_CASE("mgpu-sweep(1) calls a list what takes one, and nothing else", "[docs]") {
  const std::string page = man_page("sweep");
  for (const CommandInfo& command : commands()) {
    if (command.name != "sweep") continue;
    for (const OptionInfo& option : command.options) {
      const std::string& name = option.names.back();
      if (!option.takes_value || name == "--output" || name == "--resume" || name == "--baseline")
        continue;
      INFO(name);
      const std::string value = option.words.empty() ? "1" : option.words[0];
      bool is_list = true;
      try {
        parse_request(
            std::vector<std::string>{"sweep", "--backend=host", name, value + "," + value});
      } catch (const Error&) {
        is_list = false;
      }
      CHECK((page.find(".It Fl " + name.substr(1) + " Ar LIST\n") != std::string::npos) == is_list);
    }
  }
}

TEST_CASE("what removes a cause is an option of copy", "[docs]") {
  int remedies = 0;
  for (const std::string& line : lines_of(section(man_page("copy"), "CAUSES"))) {
    std::smatch match;
    // Where a word follows, this is what the cause's reader would type.
    if (!std::regex_match(line, match, std::regex(R"(\.Pq Fl (-[a-z-]+) Cm (\S+))"))) continue;
    const bool managed = match[1] != "-memory";
    check_parses(fmt::format("mgpu copy {} -{} {}", managed ? "--unified" : "--from host",
                             match[1].str(), match[2].str()));
    ++remedies;
  }
  CHECK(remedies > 5);
}

TEST_CASE("the table of presets in mgpu-copy(1) is that of the runtimes", "[docs]") {
  std::vector<std::string> documented, expected;
  for (const std::string& line : lines_of(section(man_page("copy"), "PRESETS")))
    if (line.starts_with(".It Li ")) documented.push_back(line.substr(7));
  for (const RuntimeKnobs& row : runtime_knobs) {
    std::string line = std::string(name(row.runtime)) + " Ta " + std::string(name(row.prefetch));
    if (row.prefetch_repeats == 2) line += ", twice";
    if (row.prefetch_needs_one_gpu) line += ", one GPU";
    line += " Ta " + std::string(name(row.owner_wait));
    if (row.owner_wait != OwnerWait::none) line += ", " + std::string(name(row.owner_lock));
    expected.push_back(line + " Ta " + std::string(name(row.threads)));
  }
  CHECK(documented == expected);
}

TEST_CASE("every command in the examples of man pages, help and README parses", "[docs]") {
  for (const CommandInfo& command : option_tree()) {
    const auto examples = man_examples(man_page(command.name));
    CHECK(examples.size() >= 2);
    for (const std::string& example : examples) check_parses(example);

    const std::vector<std::string> ask = {"help", command.name};
    const auto help = parse_request(std::span(ask).first(command.name.empty() ? 1 : 2));
    const std::string text = std::get<Immediate>(help).text;
    const auto shown = typed_commands(lines_of(text.substr(text.find("\nExamples:"))));
    CHECK(shown.size() >= 2);
    for (const std::string& example : shown) check_parses(example);
  }
  const std::string readme = read(root / "README.md");
  for (const std::string& command : typed_commands(fenced_lines(readme))) check_parses(command);
  // In the text as well, where a whole command stands between backticks.
  for (const std::string& command : all_matches(readme, std::regex("[^`]`(mgpu [^`]+)`[^`]")))
    check_parses(command);
}

TEST_CASE("commands are found behind prompts, variables, pipes and line ends", "[docs]") {
  const auto found = typed_commands(
      fenced_lines("mgpu prose\n```\n$ mgpu copy --json | mgpu show - > a.txt\n"
                   "CUDA_VISIBLE_DEVICES=1 mgpu topo # why\nbuild/release/mgpu copy \\\n"
                   "  --size 4GB\nmgpu copy: 635 samples\nmgpu: error: no\n"
                   "mpirun -n 8 mgpu merge a.json\n```\n"));
  CHECK(found == std::vector<std::string>{"mgpu copy --json", "mgpu show -", "mgpu topo",
                                          "mgpu copy --size 4GB", "mgpu merge a.json"});
}

TEST_CASE("the man pages tell every key of the JSON documents", "[docs]") {
  Words told;
  for (const CommandInfo& command : option_tree())
    told.merge(all_matches(man_page(command.name), std::regex(R"((\w+))")));
  const std::function<void(const nlohmann::json&)> check = [&](const nlohmann::json& schema) {
    for (const auto& [name, part] : schema.items()) {
      if (name == "properties") {
        for (const auto& [key, value] : part.items()) {
          INFO(key);
          CHECK(told.contains(key));
          check(value);
        }
      } else if (part.is_structured()) {
        check(part);
      }
    }
  };
  check(nlohmann::json::parse(read(root / "docs" / "result-schema.json")));
}

TEST_CASE("the man pages pass mandoc's lint", "[docs]") {
  if (!installed("mandoc")) SKIP("no mandoc here");
  const auto [out, status] =
      shell("mandoc -T lint -W warning " + (root / "man").string() + "/*.1 2>&1");
  INFO(out);
  CHECK(status == 0);
}
