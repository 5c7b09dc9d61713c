// SPDX-License-Identifier: MIT
// What stands in examples/ runs as it stands, with the real binary on CPUs.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <utility>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string examples = std::string(MGPU_SOURCE_DIR) + "/examples/";
const std::string on_cpus = " --backend host --host-devices 1 --size 64KiB --samples 5";

/// All that a shell prints in `directory`, and its exit status.
std::pair<std::string, int> shell(const TemporaryDirectory& directory, const std::string& command,
                                  const std::string& mgpu = MGPU_BINARY) {
  const std::string line = fmt::format("cd '{}' && export MGPU='{}'; {{ {}; }} 2>&1",
                                       directory.path.string(), mgpu, command);
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  const int status = pclose(pipe);
  return {out, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

bool works(const TemporaryDirectory& directory, const std::string& command) {
  return shell(directory, command).second == 0;
}

}  // namespace

TEST_CASE("a CI job keeps its first run and compares the next one with it", "[examples]") {
  TemporaryDirectory directory;
  const std::string job = "TOLERANCE=1000 '" + examples + "ci-baseline.sh' kept copy" + on_cpus;
  const auto [first, kept] = shell(directory, job);
  INFO(first);
  CHECK(kept == 0);
  CHECK_THAT(first, ContainsSubstring("kept as the baseline"));
  const std::string baseline = contents(directory.file("kept/baseline.jsonl"));
  CHECK(std::ranges::count(baseline, '\n') == 5);

  const auto [second, compared] = shell(directory, job);
  INFO(second);
  CHECK(compared == 0);
  CHECK_THAT(second, ContainsSubstring("**mgpu compare**"));
  CHECK_THAT(contents(directory.file("kept/verdict.xml")), ContainsSubstring("tests=\"1\""));
  CHECK(contents(directory.file("kept/baseline.jsonl")) == baseline);

  // Other cases are the first of their kind.
  const auto [third, other] = shell(directory, job + " --engine memcpy");
  INFO(third);
  CHECK(other == 0);
  CHECK(contents(directory.file("kept/baseline.jsonl")) != baseline);
}

TEST_CASE("a CI job fails where a case is slower", "[examples]") {
  TemporaryDirectory directory;
  const std::string fake = directory.file("mgpu");
  std::ofstream(fake) << "#!/bin/sh\n[ \"$1\" = compare ] && exit 8\nexec '" MGPU_BINARY
                         "' \"$@\"\n";
  const std::string job =
      "chmod +x mgpu; ROUNDS=1 '" + examples + "ci-baseline.sh' kept copy" + on_cpus;
  CHECK(shell(directory, job, fake).second == 0);
  CHECK(shell(directory, job, fake).second == 8);
}

TEST_CASE("a Slurm job leaves a result of each node and shows them", "[examples]") {
  TemporaryDirectory directory;
  const std::string job = "'" + examples + "slurm-node.sh'" + on_cpus;
  const auto [alone, ended] = shell(directory, job);
  INFO(alone);
  CHECK(ended == 0);
  CHECK_THAT(alone, ContainsSubstring("mgpu copy: 5 samples"));
  CHECK(works(directory, "test -s mgpu-local/$(uname -n).json"));

  // In a job srun starts it on each node.
  std::ofstream(directory.file("srun")) << "#!/bin/sh\necho started by srun\nshift\nexec \"$@\"\n";
  const auto [inside, status] =
      shell(directory, "chmod +x srun; PATH=$PWD:$PATH SLURM_JOB_ID=4711 " + job);
  INFO(inside);
  CHECK(status == 0);
  CHECK_THAT(inside, ContainsSubstring("started by srun"));
  CHECK(works(directory, "test -s mgpu-4711/$(uname -n).json"));
}

TEST_CASE("a jq line and a pandas script read what a sweep saved", "[examples]") {
  TemporaryDirectory directory;
  REQUIRE(works(directory,
                "$MGPU sweep --backend host --host-devices 1 --size 64KiB,128KiB "
                "--engine kernel,memcpy --samples 3 -o run.jsonl"));
  if (works(directory, "command -v jq")) {
    const auto [out, status] = shell(directory, "'" + examples + "jq.sh' run.jsonl");
    INFO(out);
    CHECK(status == 0);
    CHECK(std::ranges::count(out, '\n') == 4);
    CHECK(out.starts_with("65536\tkernel\t"));
  } else {
    WARN("no jq here: jq.sh is not run");
  }
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    if (!works(directory, python + " -c 'import pandas'")) continue;
    const auto [out, status] =
        shell(directory, python + " '" + examples + "pandas_rates.py' run.jsonl");
    INFO(out);
    CHECK(status == 0);
    CHECK_THAT(out, ContainsSubstring("memcpy") && ContainsSubstring("131072"));
    return;
  }
  SKIP("no python3 with pandas here: pandas_rates.py is not run");
}

TEST_CASE("the examples pass shellcheck", "[examples]") {
  TemporaryDirectory directory;
  if (!works(directory, "command -v shellcheck")) SKIP("no shellcheck here");
  const auto [out, status] = shell(directory, "shellcheck '" + examples + "'*.sh");
  INFO(out);
  CHECK(status == 0);
}
