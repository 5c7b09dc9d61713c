// SPDX-License-Identifier: MIT
// Man pages, completions and README say what the program does: a word missing there, or one too
// many, fails here.
#include "cli.hpp"
#include "documents.hpp"
#include "model/error.hpp"
#include "model/result.hpp"
#include "model/runtimes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

namespace fs = std::filesystem;
using Words = std::set<std::string>;

Words set_of(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

/// Every match of the first group.
Words all_matches(const std::string& text, const std::regex& pattern) {
  Words found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.insert((*at)[1]);
  return found;
}

const std::regex long_option{R"((?:^|[^-\w])(--[a-z][a-z-]*[a-z]))"};

Words names_of(const CommandInfo& command) {
  Words names;
  for (const OptionInfo& option : command.options)
    names.insert(option.names.begin(), option.names.end());
  return names;
}

Words all_names() {
  Words names;
  for (const CommandInfo& command : option_tree()) names.merge(names_of(command));
  return names;
}

std::vector<CommandInfo> commands() {
  auto tree = option_tree();
  tree.erase(tree.begin());
  return tree;
}

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

TEST_CASE("bash completes exactly the commands, options and words there are", "[docs]") {
  if (!installed("bash")) SKIP("no bash here");
  std::string script = ". '" + (root / "completions" / "mgpu.bash").string() + "' || exit\n" + R"(
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mgpu; echo "${COMPREPLY[*]}"; }
)";
  std::vector<std::pair<std::string, Words>> asked;
  const auto ask = [&](const std::string& words, Words expected) {
    script += "ask " + words + "\n";
    asked.emplace_back(words, std::move(expected));
  };
  Words top = {"help"}, names;
  for (const CommandInfo& command : commands()) names.insert(command.name);
  top.insert(names.begin(), names.end());
  top.merge(names_of(option_tree().front()));
  ask("mgpu ''", top);
  ask("mgpu help ''", names);
  for (const CommandInfo& command : commands()) {
    ask("mgpu " + command.name + " -", names_of(command));
    for (const OptionInfo& option : command.options) {
      if (option.words.empty()) continue;
      const std::string before = "mgpu " + command.name + " " + option.names.back();
      // A word that is taken behind = alone is not offered behind a blank.
      ask(before + " ''", option.takes_value ? set_of(option.words) : names_of(command));
      ask(before + " = '" + option.words[0] + "'", [&] {
        Words same;
        for (const std::string& word : option.words)
          if (word.starts_with(option.words[0])) same.insert(word);
        return same;
      }());
    }
  }
  ask("mgpu copy --size ''", {});
  ask("mgpu sweep --size 1MB,", {});
  ask("mgpu sweep --engine kernel,", {"kernel,kernel", "kernel,memcpy"});
  ask("mgpu sweep --peer = auto,off,o", {"auto,off,on", "auto,off,off"});
  ask("mgpu sweep --format text,", {});
  ask("mgpu copy --engine kernel,", {});
  const auto answers = lines_of(shell("bash --norc <<'END'\n" + script + "END\n").first);
  REQUIRE(answers.size() == asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    INFO(asked[i].first);
    CHECK(set_of(split(answers[i])) == asked[i].second);
  }
}

TEST_CASE("bash lists GPUs by counting what the driver lists", "[docs]") {
  if (!installed("bash")) SKIP("no bash here");
  const std::string source = ". '" + (root / "completions" / "mgpu.bash").string() + "'\n";
  const std::string fake = R"sh(
folder=$(mktemp -d); mkdir "$folder/0000:17:00.0" "$folder/0000:65:00.0"
echo $(_mgpu_ordinals "$folder"); echo "none:$(_mgpu_ordinals "$folder/absent")"; rm -r "$folder"
_mgpu_ordinals() { echo 0; echo 1; }
COMP_WORDS=(mgpu copy --gpus ''); COMP_CWORD=3; _mgpu; echo "${COMPREPLY[*]}"
COMP_WORDS=(mgpu copy --gpus 1,); COMP_CWORD=3; _mgpu; echo "${COMPREPLY[*]}"
)sh";
  CHECK(lines_of(shell("bash --norc <<'END'\n" + source + fake + "END\n").first) ==
        std::vector<std::string>{"0 1", "none:", "all 0 1", "1,0 1,1"});
}

TEST_CASE("fish completes exactly the commands, options and words there are", "[docs]") {
  const std::string text = read(root / "completions" / "mgpu.fish");
  for (const CommandInfo& command : commands()) {
    INFO(command.name);
    CHECK(text.find("-n __fish_use_subcommand -a " + command.name + " ") != std::string::npos);
    Words names;
    for (const std::string& line : lines_of(text)) {
      if (!line.starts_with("complete ")) continue;
      std::smatch condition;
      const bool bound = std::regex_search(line, condition, std::regex("-n '([^']*)'"));
      const bool general = line.find(" -n ") == std::string::npos;
      if (!general && !(bound && set_of(split(condition[1])).contains(command.name))) continue;
      Words here;
      for (const std::string& name : all_matches(line, std::regex(" -l ([a-z-]+)")))
        here.insert("--" + name);
      for (const std::string& name : all_matches(line, std::regex(" -s ([a-zA-Z])")))
        here.insert("-" + name);
      names.insert(here.begin(), here.end());
      for (const OptionInfo& option : command.options) {
        if (!here.contains(option.names.back())) continue;
        INFO(line);
        CHECK(here == set_of(option.names));
        std::smatch words;
        std::regex_search(line, words, std::regex("-a '([^']*)'"));
        std::string offered = words[1];
        if (offered.starts_with("(__mgpu_list "))
          offered = offered.substr(offered.find(' '), offered.rfind(')') - offered.find(' '));
        if (!option.words.empty()) CHECK(set_of(split(offered)) == set_of(option.words));
        CHECK(option.takes_value ==
              (line.find(" -x ") != std::string::npos || line.find(" -r ") != std::string::npos));
      }
    }
    CHECK(names == names_of(command));
  }
}

TEST_CASE("fish itself offers each command exactly its options, and each option its words",
          "[docs]") {
  if (!installed("fish")) SKIP("no fish here");
  std::string script = "source '" + (root / "completions" / "mgpu.fish").string() + "'\n";
  std::vector<std::pair<std::string, Words>> asked;
  const auto ask = [&](const std::string& line, Words expected) {
    script += "complete -C '" + line + "'; echo .\n";
    asked.emplace_back(line, std::move(expected));
  };
  Words names;
  for (const CommandInfo& command : commands()) names.insert(command.name);
  ask("mgpu help ", names);
  names.insert("help");
  ask("mgpu ", names);
  for (const CommandInfo& command : commands()) {
    ask("mgpu " + command.name + " -", names_of(command));
    for (const OptionInfo& option : command.options) {
      if (option.words.empty()) continue;
      const std::string line = "mgpu " + command.name + " " + option.names.back();
      Words attached;
      for (const std::string& word : option.words)
        attached.insert(option.names.back() + "=" + word);
      ask(line + "=", attached);
      if (option.takes_value) ask(line + " ", set_of(option.words));
    }
  }
  ask("mgpu sweep --engine kernel,", {"kernel,kernel", "kernel,memcpy"});
  ask("mgpu copy --engine kernel,", {});
  const auto lines = lines_of(shell("fish --no-config <<'END' 2>&1\n" + script + "END\n").first);
  auto line = lines.begin();
  for (const auto& [question, expected] : asked) {
    Words offered;
    for (; line != lines.end() && *line != "."; ++line)
      offered.insert(line->substr(0, line->find('\t')));
    // Its own: that a value may follow.
    std::erase_if(offered, [](const std::string& word) { return word.ends_with('='); });
    INFO(question);
    REQUIRE(line != lines.end());
    CHECK(offered == expected);
    ++line;
  }
}

TEST_CASE("zsh's completion names every option and word, and no other option", "[docs]") {
  const std::string text = read(root / "completions" / "_mgpu");
  const auto lines = lines_of(text);
  const Words known = all_names();
  for (const CommandInfo& command : commands()) {
    CHECK(text.find("'" + command.name + ":") != std::string::npos);
    for (const OptionInfo& option : command.options) {
      for (const std::string& name : option.names) {
        INFO(name);
        const std::regex spec("(^|[^-\\w])" + name + "(=-?|\\+)?[\\[},]");
        const auto line = std::ranges::find_if(
            lines, [&](const std::string& one) { return std::regex_search(one, spec); });
        REQUIRE(line != lines.end());
        std::smatch words;
        std::regex_search(*line, words, std::regex(R"(:\(([^)]*)\)')"));
        CHECK(set_of(split(words[1])) == set_of(option.words));
      }
    }
  }
  for (const std::string& name : all_matches(text, long_option)) {
    INFO(name);
    CHECK(known.contains(name));
  }
}

TEST_CASE("zsh offers each command exactly its options", "[docs]") {
  if (!installed("zsh")) SKIP("no zsh here");
  for (const CommandInfo& command : commands()) {
    INFO(command.name);
    // With _arguments replaced, sourcing prints the specifications that it would have got.
    const auto [out, status] = shell(
        "zsh -f <<'END' 2>&1\n_arguments() { print -rl -- \"$@\" }\nwords=(mgpu " + command.name +
        " ''); CURRENT=3\nsource '" + (root / "completions" / "_mgpu").string() + "'\nEND\n");
    Words names;
    for (const std::string& line : lines_of(out))
      for (const std::string& name :
           all_matches(line.substr(0, line.find('[')),
                       std::regex(R"((?:^|\)|\*)(--?[a-zA-Z][a-z]*(?:-[a-z]+)*)(?:=-?|\+)?$)")))
        if (line.find('[') != std::string::npos) names.insert(name);
    CHECK(names == names_of(command));
  }
}

TEST_CASE("zsh itself offers each command its options, and each option its words", "[docs]") {
  if (!installed("zsh")) SKIP("no zsh here");
  std::string lines;
  std::vector<std::pair<std::string, Words>> asked;
  const auto ask = [&](const std::string& line, Words expected) {
    lines += "'" + line + "' ";
    asked.emplace_back(line, std::move(expected));
  };
  Words names;
  for (const CommandInfo& command : commands()) names.insert(command.name);
  ask("mgpu help ", names);
  for (const CommandInfo& command : commands()) {
    Words options;
    for (const std::string& name : names_of(command))
      if (name.starts_with("--")) options.insert(name);
    ask("mgpu " + command.name + " --", options);
    for (const OptionInfo& option : command.options)
      if (!option.words.empty())
        ask("mgpu " + command.name + " " + option.names.back() + "=", set_of(option.words));
  }
  // A zsh on a terminal of its own is typed to. What its completion adds goes to a file, with a
  // point behind each line.
  const auto [out, status] = shell("zsh -f <<'END' 2>&1\ncompletions='" +
                                   (root / "completions").string() + "' lines=(" + lines +
                                   R"sh()
zmodload zsh/zpty
folder=$(mktemp -d)
zpty shell zsh -f -i
say() { zpty -w shell "$1" }
say "PS1= PS2= HISTFILE=; fpath=($completions \$fpath); autoload -U compinit; compinit -u -d $folder/dump"
say "compadd() { local -a hits; builtin compadd -O hits \"\$@\"; print -rl -- \$hits >>$folder/hits; builtin compadd \"\$@\" }"
say "next() { print . >>$folder/hits; zle kill-buffer }; zle -N next; bindkey '^Y' next"
for line in $lines; do zpty -w -n shell $line$'\t\x19'; done
say "print at the e''nd"
zpty -r shell seen '*at the end*'
zpty -d shell
cat $folder/hits
rm -r $folder
END
)sh");
  const auto answers = lines_of(out);
  auto answer = answers.begin();
  for (const auto& [question, expected] : asked) {
    Words offered;
    for (; answer != answers.end() && *answer != "."; ++answer)
      if (!answer->empty()) offered.insert(*answer);
    INFO(question << "\n" << (answer == answers.end() ? out : ""));
    REQUIRE(answer != answers.end());
    CHECK(offered == expected);
    ++answer;
  }
}

TEST_CASE("the completions are well-formed", "[docs]") {
  const fs::path folder = root / "completions";
  for (const auto& [program, file] : {std::pair{"bash", "mgpu.bash"}, std::pair{"zsh", "_mgpu"},
                                      std::pair{"fish", "mgpu.fish"}}) {
    if (!installed(program)) {
      WARN("no " << program << " here: " << file << " is not checked");
      continue;
    }
    const auto [out, status] =
        shell(std::string(program) + " -n '" + (folder / file).string() + "' 2>&1");
    INFO(out);
    CHECK(status == 0);
  }
}
