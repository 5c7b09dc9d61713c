// SPDX-License-Identifier: MIT
// What README.md shows is true: its commands run, its output is what mgpu prints, and what it names
// exists.
#include "documents.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

using namespace mgpu;

namespace {

namespace fs = std::filesystem;

std::string readme() {
  return read(root / "README.md");
}

// Stands in PATH for mgpu: the same commands, but small and on CPUs.
const std::string small = R"sh(#!/usr/bin/env bash
args=() command=${1-}
while (($#)); do
  case $1 in --size | --seconds) shift ;; *) args+=("$1") ;; esac
  shift
done
case $command in
  copy | sweep | topo)
    args+=(--backend host --host-devices 2 --size 64KiB --seconds 0.02)
    ;;
esac
exec "$MGPU_BINARY" "${args[@]}"
)sh";

struct NewUser {
  TemporaryDirectory directory;

  NewUser() {
    write("mgpu", small);
    fs::permissions(directory.path / "mgpu", fs::perms::owner_all);
    fs::create_symlink(root / "examples", directory.path / "examples");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory.file(name)) << text;
  }

  std::pair<std::string, int> types(const std::string& line) const {
    return shell(
        fmt::format("cd '{0}' && export PATH=\"{0}:$PATH\" MGPU_BINARY='{1}' RESULTS=mgpu-4711 && "
                    "unset SLURM_JOB_ID && {{ {2}\n}} 2>&1",
                    directory.path.string(), MGPU_BINARY, line));
  }
};

}  // namespace

TEST_CASE("every command in the README does what it says, one after the other", "[docs]") {
  if (!installed("bash")) SKIP("no bash here");
  const bool draws = installed("gnuplot") && installed("dot");
  const NewUser user;
  int run = 0;
  for (std::string line : typed_lines(fenced_lines(readme(), "sh"))) {
    line = std::regex_replace(line, std::regex(R"(^(sbatch|mpirun)( -\S+( \d+)?)* )"), "");
    const std::string program = split(line)[0];
    if (program != "mgpu" && !program.starts_with("examples/")) continue;
    const auto [out, status] = user.types(line);
    INFO("$ " << line << "\n" << out);
    if (line.find("--expect") != std::string::npos)
      CHECK((status == 0 || status == 8));
    else if (draws || line.find(".svg") == std::string::npos)
      CHECK(status == 0);
    else
      CHECK(status == 4);
    ++run;
  }
  CHECK(run > 15);
}

TEST_CASE("the output in the README is what mgpu prints of the results beside the pictures",
          "[docs]") {
  std::set<std::string> printed;
  for (const auto& file : fs::directory_iterator(root / "docs" / "pictures")) {
    if (!file.path().extension().string().starts_with(".json")) continue;
    const auto [out, status] =
        shell(fmt::format("'{}' show '{}' 2>&1", MGPU_BINARY, file.path().string()));
    INFO(file.path() << "\n" << out);
    CHECK(status == 0);
    for (const std::string& line : lines_of(out)) printed.insert(line);
  }
  const auto shown = fenced_lines(readme(), "text");
  CHECK(shown.size() > 10);
  for (const std::string& line : shown) {
    INFO(line);
    // Three points stand for lines that are left out.
    CHECK((line == "..." || printed.contains(line)));
  }
}

TEST_CASE("files, scripts and presets that the documents name exist", "[docs]") {
  std::set<std::string> presets;
  const auto listed = nlohmann::json::parse(read(root / "CMakePresets.json"));
  for (const auto& preset : listed.at("configurePresets"))
    presets.insert(preset.at("name").get<std::string>());

  int found = 0;
  for (const std::string file :
       {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md",
        "docs/measurements.md", "docs/reliability.md"}) {
    INFO(file);
    const std::string text = read(root / file);
    CHECK(!text.empty());
    const auto each = [&](const std::string& pattern, const auto& check) {
      const std::regex expression(pattern);
      for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
        INFO(at->str());
        check((*at)[1].str());
        ++found;
      }
    };
    each(R"(\]\((?!https?:)([^)#]+))", [&](const std::string& link) {
      CHECK(fs::exists(root / fs::path(file).parent_path() / link));
    });
    each(R"(\b((?:scripts|examples|tests|docs|src|man|completions)/[\w./-]*\.\w+))",
         [&](const std::string& path) { CHECK(fs::exists(root / path)); });
    each(R"(cmake [^\n`]*--preset ([a-z]+))",
         [&](const std::string& preset) { CHECK(presets.contains(preset)); });
  }
  CHECK(found > 30);
}
