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

// Runs what stands behind as a job of `fake_slurm`.
const std::string in_a_job = "PATH=$PWD:$PATH SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=nodes ";

/// Programs of Slurm for a job that runs on this machine alone, on `nodes` by its own account.
void fake_slurm(const TemporaryDirectory& directory, const std::string& nodes) {
  std::ofstream(directory.file("srun"))
      << "#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do "
         "shift; done\n"
         "SLURM_PROCID=0 SLURM_NTASKS=1 exec \"$@\"\n";
  std::ofstream(directory.file("scontrol")) << "#!/bin/sh\n" << nodes << "\n";
  REQUIRE(works(directory, "chmod +x srun scontrol"));
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
  fake_slurm(directory, "uname -n");
  const auto [inside, status] = shell(directory, in_a_job + job);
  INFO(inside);
  CHECK(status == 0);
  CHECK_THAT(inside, ContainsSubstring("mgpu copy: 5 samples"));
  CHECK(works(directory, "test -s mgpu-4711/$(uname -n).0.json"));
}

TEST_CASE("a Slurm job names the nodes that left no result, and leaves them out", "[examples]") {
  TemporaryDirectory directory;
  const std::string job = in_a_job + "'" + examples + "slurm-health.sh'" + on_cpus;
  fake_slurm(directory, "uname -n");
  const auto [whole, ended] = shell(directory, job);
  INFO(whole);
  CHECK(ended == 0);
  CHECK(contents(directory.file("mgpu-4711/slow.txt")).empty());

  fake_slurm(directory, "uname -n; echo node8; echo node9");
  const auto [partial, status] = shell(directory, job);
  INFO(partial);
  CHECK(status == 1);
  CHECK_THAT(partial, ContainsSubstring("no result, and so in slow.txt: node8,node9"));
  CHECK(contents(directory.file("mgpu-4711/slow.txt")) == "node8,node9\n");
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
