// SPDX-License-Identifier: MIT
// The completions offer what the program takes, by their text and by what the shells make of it.
#include "cli.hpp"
#include "documents.hpp"
#include "option_names.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

TEST_CASE("bash completes exactly the commands, options and words there are", "[completions]") {
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

TEST_CASE("bash lists GPUs by counting what the driver lists", "[completions]") {
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

TEST_CASE("fish completes exactly the commands, options and words there are", "[completions]") {
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
          "[completions]") {
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

TEST_CASE("zsh's completion names every option and word, and no other option", "[completions]") {
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

TEST_CASE("zsh offers each command exactly its options", "[completions]") {
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

TEST_CASE("zsh itself offers each command its options, and each option its words",
          "[completions]") {
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

TEST_CASE("the completions are well-formed", "[completions]") {
  const std::filesystem::path folder = root / "completions";
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
