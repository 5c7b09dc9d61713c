// SPDX-License-Identifier: MIT
// Outputs that fail, and files that are hostile: nothing is lost in silence, half-written or
// written elsewhere.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <sys/mount.h>
#include <unistd.h>
#include <vector>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

using Args = std::vector<std::string>;

Args copy(const Args& more = {}) {
  Args args = {"copy", "--size", "1MiB", "--samples", "20"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Free texts of a document: whoever writes a result file may put anything there.
void poison(json& value, const std::string& payload) {
  const std::set<std::string> free = {"name",    "uuid", "reason", "kernel",
                                      "version", "text", "option"};
  for (auto& [key, item] : value.items()) {
    if (key == "tool") continue;  // tells that the document is ours
    if (item.is_structured())
      poison(item, payload);
    else if (item.is_string() && free.contains(key))
      item = payload;
  }
}

}  // namespace

TEST_CASE(
    "an output that vanishes during the run is an error with its path, and stdout has the report",
    "[reliability]") {
  const std::string format = GENERATE("json", "jsonl", "txt", "csv", "md");
  TemporaryDirectory directory;
  const std::string folder = directory.file("results"), file = folder + "/run." + format;
  std::filesystem::create_directory(folder);
  Simulation simulation;
  simulation.edit = [&](Machine&) { std::filesystem::remove_all(folder); };
  const Outcome outcome = simulation(copy({"-o", file}));
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, ContainsSubstring("mgpu: error: cannot write " + file));
  CHECK_THAT(outcome.out, ContainsSubstring("20 samples"));
}

TEST_CASE("a device file that is full is an error with its path", "[reliability]") {
  if (access("/dev/full", W_OK) != 0) SKIP("there is no /dev/full here");
  const Outcome outcome = Simulation{}(copy({"-o", "json:/dev/full"}));
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, ContainsSubstring("cannot write /dev/full: No space left on device"));
  CHECK_THAT(outcome.out, ContainsSubstring("20 samples"));
}

TEST_CASE("a full disk keeps the earlier result and whole lines, and leaves nothing beside them",
          "[reliability]") {
  TemporaryDirectory directory;
  if (mount("tmpfs", directory.path.c_str(), "tmpfs", 0, "size=64k") != 0)
    SKIP("no file system can be mounted here");
  struct Unmount {
    const char* path;
    ~Unmount() { umount(path); }
  } unmount{directory.path.c_str()};
  const std::string replaced = directory.file("run.json"), appended = directory.file("run.jsonl");
  REQUIRE(Simulation{}(copy({"-o", replaced, "-o", appended})).code == 0);
  const std::string before = contents(replaced), line = contents(appended);
  const Args large = {"copy", "--size", "4KiB", "--samples", "20000", "--seconds", "60"};
  for (const auto& more : {Args{"-o", replaced}, Args{"-o", appended, "--append"}}) {
    Args args = large;
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = Simulation{}(args);
    INFO(more[1]);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err,
               ContainsSubstring("cannot write " + more[1] + ": No space left on device"));
    CHECK_THAT(outcome.out,
               ContainsSubstring("20,000 samples") || ContainsSubstring("20000 samples"));
    CHECK(contents(replaced) == before);
    CHECK(contents(appended) == line);
    CHECK(directory.files() == 2);
  }
  REQUIRE(mount(nullptr, directory.path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  std::vector<std::string> log;
  Simulation simulation;
  simulation.options.log = &log;
  const Outcome outcome = simulation(copy({"-o", replaced}));
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, ContainsSubstring(replaced + ": Read-only file system"));
  CHECK(log.empty());  // nothing was measured in vain
}

TEST_CASE("a hostile result file writes nothing but what was named", "[reliability]") {
  TemporaryDirectory directory;
  const std::string hostile = directory.file("hostile.json"), marker = directory.file("pwned");
  json document =
      json::parse(Simulation{}({"sweep", "--size", "1MiB,2MiB", "--samples", "5", "--json"}).out);
  const std::string payload = "`touch " + marker + "`'; system(\"touch " + marker +
                              "\"); set output '" + marker + "'\n$(touch " + marker +
                              ")\n../../pwned\x1b]0;x\x07<img src=x>|=cmd()|";
  poison(document, payload);
  document["warnings"] = {payload};
  document["command"] = {payload};
  document["environment"] = {{"CUDA_VISIBLE_DEVICES", payload}};
  std::ofstream(hostile) << document.dump();
  Args args = {"show", hostile};
  std::set<std::string> named = {"hostile.json"};
  for (const char* format : {"txt", "json", "jsonl", "csv", "md", "gp"}) {
    args.insert(args.end(), {"-o", directory.file(std::string("out.") + format)});
    named.insert(std::string("out.") + format);
  }
  const bool gnuplot = access("/usr/bin/gnuplot", X_OK) == 0;
  if (gnuplot) {
    args.insert(args.end(), {"-o", directory.file("out.svg")});
    named.insert("out.svg");
  }
  const Outcome outcome = Simulation{}(args);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path))
    found.insert(entry.path().filename().string());
  CHECK(found == named);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
  CHECK(contents(directory.file("out.md")).find('\x1b') == std::string::npos);
}

TEST_CASE("no source starts a shell, and one file starts programs", "[reliability]") {
  const std::regex shell(R"(\b(system|popen|wordexp|execl[pe]?|execvp|execv)\s*\()"),
      spawn(R"(\bposix_spawnp?\s*\()");
  std::set<std::string> spawning;
  std::size_t seen = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(MGPU_SOURCE_DIR) + "/src")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = contents(entry.path().string());
    ++seen;
    INFO(entry.path().string());
    CHECK_FALSE(std::regex_search(text, shell));
    if (std::regex_search(text, spawn)) spawning.insert(entry.path().filename().string());
  }
  CHECK(seen > 100);
  CHECK(spawning == std::set<std::string>{"pictures.cpp"});
}
