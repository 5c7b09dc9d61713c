// SPDX-License-Identifier: MIT
// The real binary, started as a shell would.
#include "process.hpp"

#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

// Runs mgpu on a terminal; `seen` is told of all that was printed.
Ended start_on_terminal(const std::vector<std::string>& args,
                        const std::function<void(pid_t, const std::string&)>& seen = {}) {
  int terminal = -1;
  winsize size{24, 80, 0, 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    unsetenv("NO_COLOR");
    exec(args);
  }
  Ended ended;
  std::array<char, 4096> block{};
  for (ssize_t length; (length = read(terminal, block.data(), block.size())) > 0;) {
    ended.out.append(block.data(), static_cast<std::size_t>(length));
    if (seen) seen(child, ended.out);
  }
  waitpid(child, &ended.status, 0);
  close(terminal);
  return ended;
}

}  // namespace

TEST_CASE("the binary tells its version and its features") {
  const Ended ended = start({"--version"});
  CHECK(ended.code() == 0);
  CHECK_THAT(ended.out, ContainsSubstring("mgpu ") && ContainsSubstring("hwloc"));
}

TEST_CASE("an unknown option exits 2, says so on stderr and prints nothing") {
  const Ended ended = start({"copy", "--sise", "1GB"});
  CHECK(ended.code() == 2);
  CHECK(ended.out.empty());
  CHECK_THAT(ended.err, ContainsSubstring("--sise") && ContainsSubstring("--size"));
}

TEST_CASE(
    "a size that is no multiple of anything is copied by CPUs and verified to the last byte") {
  const Ended ended = start(host_copy(
      {"--host-devices", "2", "--size", "1000003", "--split", "3", "--samples", "20", "--json"}));
  REQUIRE(ended.code() == 0);
  const json result = json::parse(ended.out)["cases"][0];
  CHECK(result["bytes_copied"] == 1000003);
  CHECK(result["verified"] == true);
  CHECK(result["verification"]["bytes"] == 1000003);
  CHECK(result["per_device"].size() == 2);
}

TEST_CASE(
    "copies of one array follow each other on CPUs where the host waits for the owner, else they "
    "overlap") {
  const auto result = [](const char* wait) {
    const Ended ended =
        start(host_copy({"--host-devices", "2", "--unified", "--gpus", "0,1", "--home", "0",
                         "--size", "64MiB", "--samples", "20", "--owner-wait", wait, "--json"}));
    REQUIRE(ended.code() == 0);
    return json::parse(ended.out)["cases"][0];
  };
  const json with = result("host"), without = result("none");
  // Busy times that follow each other fill at most the wall time; those that overlap fill it more
  // than once.
  CHECK(with["overlap"].get<double>() <= 1.0);
  CHECK(without["overlap"].get<double>() > with["overlap"].get<double>());
  CHECK(without["per_device"][0]["wait_ns"] == 0);
  CHECK(without["per_device"][1]["wait_ns"] == 0);
  CHECK(with["verified"] == true);
  CHECK(without["verified"] == true);
}

TEST_CASE("a reader that goes away ends the run quietly") {
  std::array<int, 2> out{};
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  close(out[0]);
  std::array<int, 2> err{};
  REQUIRE(pipe2(err.data(), O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    dup2(err[1], 2);
    exec(host_copy({"--size", "1MiB", "--samples", "3"}));
  }
  close(out[1]);
  close(err[1]);
  std::string said;
  std::array<char, 256> block{};
  for (ssize_t length; (length = read(err[0], block.data(), block.size())) > 0;)
    said.append(block.data(), static_cast<std::size_t>(length));
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(said.empty());
}

TEST_CASE("a full disk is an error") {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) SKIP("there is no /dev/full here");
  const pid_t child = fork();
  if (child == 0) {
    dup2(full, 1);
    dup2(open("/dev/null", O_WRONLY), 2);
    exec(host_copy({"--size", "1MiB", "--samples", "3"}));
  }
  close(full);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}

TEST_CASE("progress is shown on a terminal and wiped, the report is coloured") {
  const Ended ended = start_on_terminal(host_copy({"--size", "1MiB", "--seconds", "0.5"}));
  CHECK(ended.code() == 0);
  CHECK_THAT(ended.out, ContainsSubstring("sampling") && ContainsSubstring("\x1b[K"));
  CHECK_THAT(ended.out, ContainsSubstring("\x1b["));
  const Ended piped = start(host_copy({"--size", "1MiB", "--seconds", "0.3"}));
  CHECK(piped.err.empty());
  CHECK(piped.out.find('\x1b') == std::string::npos);
}

TEST_CASE(
    "a signal in the middle gives the partial report and ends the process as the signal does") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    bool sent = false;
    // On a terminal, progress tells when sampling has begun; the report goes to a file.
    const TemporaryDirectory directory;
    const std::string path = directory.file("run.json");
    const Ended ended =
        start_on_terminal(host_copy({"--size", "4MiB", "--seconds", "60", "-o", path}),
                          [&](pid_t child, const std::string& printed) {
                            if (sent || printed.find("sampling") == std::string::npos) return;
                            sent = true;
                            kill(child, signal);
                          });
    INFO("signal " << signal);
    REQUIRE(WIFSIGNALED(ended.status));
    CHECK(WTERMSIG(ended.status) == signal);
    const json document = json::parse(contents(path));
    CHECK(document["complete"] == false);
    CHECK(document["exit_code"] == 128 + signal);
    CHECK(document["cases"][0]["samples"] > 0);
  }
}

TEST_CASE("a background job of a script can be interrupted too") {
  bool sent = false;
  const Ended ended = start(
      host_copy({"--size", "1MiB", "--seconds", "60", "--owner-wait",
                 "host"}),  // its note on stderr tells that it runs
      [&](pid_t child, const std::string& err) {
        if (sent || err.empty()) return;
        sent = true;
        kill(child, SIGINT);
      },
      [] { std::signal(SIGINT, SIG_IGN); });
  if (!sent) SKIP("the note came too late to send a signal");
  CHECK(WIFSIGNALED(ended.status));
}
