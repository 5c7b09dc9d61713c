// SPDX-License-Identifier: MIT
// How a process ends: by signals and timeouts while a device hangs, and with outputs that fail.
// Real descriptors, signals and clocks; hangs and losses are injected into CPU devices.
#include "process.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

using Call = Fault::Call;
using Args = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// What is promised is two seconds; the rest is for a machine that does something else as well.
constexpr std::chrono::duration<double> soon(3), at_once(0.9);

int write_to(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

Fault hang_at(Call call) {
  Fault fault;
  fault.call = call;
  fault.act = Fault::Act::hang;
  return fault;
}

// One command line in a process of its own, on two CPU devices with a fault. Its stdout and stderr
// are files.
class Child {
 public:
  Child(const Args& args, const Fault& fault) {
    REQUIRE(pipe2(hung_.data(), O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      // Before any thread is started, as main does it.
      sigset_t signals;
      sigemptyset(&signals);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
      pthread_sigmask(SIG_BLOCK, &signals, nullptr);
      run(args, fault);
    }
    close(std::exchange(hung_[1], -1));
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    for (const int end : hung_)
      if (end >= 0) close(end);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Blocking; false where it ended without a hang.
  bool wait_until_hung() {
    char byte = 0;
    return read(hung_[0], &byte, 1) == 1;
  }

  void signal(int number) {
    signalled_ = Clock::now();
    kill(pid_, number);
  }

  int status() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    took_ = Clock::now() - signalled_;
    return status;
  }

  std::chrono::duration<double> took() const { return took_; }  // since the signal, or the start
  std::string out() const { return contents(directory_.file("out")); }
  std::string err() const { return contents(directory_.file("err")); }

 private:
  [[noreturn]] void run(const Args& args, const Fault& fault) {
    const int out = open(directory_.file("out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int err = open(directory_.file("err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    Console console;
    console.out = [&](std::string_view bytes) { return write_to(out, bytes); };
    console.err = [&](std::string_view bytes) { write_to(err, bytes); };
    console.leave = [](int code) { _exit(code); };
    console.handle_signals = true;
    const auto make = [&](std::optional<int>) {
      auto faulty = std::make_unique<FaultyBackend>(make_host_backend(2), std::vector{fault});
      if (fault.act == Fault::Act::hang)
        std::thread([backend = faulty.get(), fd = hung_[1]] {
          backend->wait_until_hung();
          write_to(fd, "!");
        }).detach();
      return faulty;
    };
    const BackendRow rows[] = {{BackendKind::host, true, make}};
    _exit(run_app(args, console, rows));
  }

  TemporaryDirectory directory_;
  std::array<int, 2> hung_ = {-1, -1};
  pid_t pid_ = -1;
  Clock::time_point signalled_ = Clock::now();
  std::chrono::duration<double> took_{};
};

constexpr Call phases[] = {Call::machine,     Call::open, Call::free_memory, Call::allocate,
                           Call::open_worker, Call::fill, Call::prefetch,    Call::copy,
                           Call::wait_for,    Call::sync, Call::check};

Args hung_copy(const Args& more) {
  Args args = {"copy",       "--backend", "host",         "--gpus", "0,1",       "--unified",
               "--home",     "0",         "--size",       "1MiB",   "--samples", "20",
               "--prefetch", "slice",     "--owner-wait", "host",   "--json"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

}  // namespace

TEST_CASE("a signal ends a run within two seconds whatever hangs, after the report",
          "[reliability]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  std::vector<std::unique_ptr<Child>> children;
  for (const Call phase : phases)
    children.push_back(std::make_unique<Child>(hung_copy({"--timeout", "0"}), hang_at(phase)));
  for (const auto& child : children) {
    REQUIRE(child->wait_until_hung());
    child->signal(signal);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    INFO("call " << static_cast<int>(phases[i]) << ", signal " << signal);
    const int status = children[i]->status();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + signal);
    CHECK(children[i]->took() < soon);
    const json document = json::parse(children[i]->out());
    CHECK(document["complete"] == false);
    CHECK(document["exit_code"] == 128 + signal);
  }
}

TEST_CASE("a run that hangs ends with 7 within a second of --timeout, whatever hangs",
          "[reliability]") {
  std::vector<std::unique_ptr<Child>> children;
  for (const Call phase : phases)
    children.push_back(std::make_unique<Child>(hung_copy({"--timeout", "1"}), hang_at(phase)));
  for (std::size_t i = 0; i < children.size(); ++i) {
    INFO("call " << static_cast<int>(phases[i]));
    REQUIRE(children[i]->wait_until_hung());
    const auto hung = Clock::now();
    const int status = children[i]->status();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(Clock::now() - hung < soon);
    const json document = json::parse(children[i]->out());
    CHECK(document["complete"] == false);
    CHECK(document["exit_code"] == 7);
    CHECK(document["error"]["kind"] == "timeout");
    CHECK_THAT(children[i]->err(), ContainsSubstring("mgpu: error: timed out after 1 s in "));
  }
}

TEST_CASE("a second signal ends a run at once", "[reliability]") {
  Child child(hung_copy({"--timeout", "0"}), hang_at(Call::sync));
  REQUIRE(child.wait_until_hung());
  child.signal(SIGINT);
  child.signal(SIGTERM);  // another number: two of one may be seen as one
  const int status = child.status();
  CHECK(WIFSIGNALED(status));
  CHECK(child.took() < at_once);
}

TEST_CASE("a signal while a stuck reader holds up the report ends the run within two seconds",
          "[reliability]") {
  std::array<int, 2> out{};
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  REQUIRE(fcntl(out[1], F_SETPIPE_SZ, 4096) > 0);
  const int room = fcntl(out[1], F_GETPIPE_SZ);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    dup2(open("/dev/null", O_WRONLY), 2);
    exec(host_copy({"--size", "4KiB", "--samples", "5000", "--json"}));
  }
  // Until the pipe is full: then it waits for a reader.
  for (int held = 0; held < room; std::this_thread::yield()) {
    REQUIRE(ioctl(out[0], FIONREAD, &held) == 0);
    REQUIRE(waitpid(child, nullptr, WNOHANG) == 0);
  }
  const auto start = Clock::now();
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(Clock::now() - start < soon);
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 143));
  close(out[0]);
  close(out[1]);
}

TEST_CASE("a device lost in one of two threads ends the run with 1 in less than two seconds",
          "[reliability]") {
  Fault lost;
  lost.call = GENERATE(Call::copy, Call::sync);
  lost.device = 1;
  lost.nth = 9;
  lost.lost = true;
  Child child(hung_copy({"--timeout", "0"}), lost);
  const int status = child.status();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(child.took() < soon);
  const json document = json::parse(child.out());
  CHECK(document["error"]["device"] == 1);
  CHECK(document["cases"][0]["samples"] > 0);
}

TEST_CASE("a closed stdout is an error, and never the number of a result file", "[reliability]") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.jsonl");
  const Ended ended = start(host_copy({"--size", "1MiB", "--samples", "3", "-o", file}), {},
                            [] { close(STDOUT_FILENO); });
  CHECK(ended.code() == 1);
  CHECK_THAT(ended.err, ContainsSubstring("cannot write to stdout: Bad file descriptor"));
  CHECK(json::parse(contents(file))["cases"].size() == 1);
  const Ended silent =
      start(host_copy({"--size", "1MiB", "--samples", "3", "-o", file, "--force"}), {}, [] {
        close(STDIN_FILENO);
        close(STDERR_FILENO);
      });
  CHECK(silent.code() == 0);
  CHECK(json::parse(contents(file))["cases"].size() == 1);
}

TEST_CASE("a reader that takes one line ends the run with 0, quietly, and the files are whole",
          "[reliability]") {
  TemporaryDirectory directory;
  std::array<int, 2> out{};
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  const std::string file = directory.file("run.json");
  const Ended ended =
      start(host_copy({"--size", "4KiB", "--samples", "5000", "--json", "-o", file}), {}, [&] {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
      });
  close(out[0]);
  close(out[1]);
  CHECK(ended.err.empty());
  CHECK(ended.code() == 0);
  CHECK(json::parse(contents(file))["complete"] == true);
}

TEST_CASE("a pipe that its other holder made non-blocking gets the whole report", "[reliability]") {
  const Ended ended =
      start(host_copy({"--size", "4KiB", "--samples", "300", "--seconds", "60", "--json"}), {}, [] {
        fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
        fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 4096);  // less than the report
      });
  CHECK(ended.code() == 0);
  CHECK(ended.out.size() > 4096);
  CHECK(json::parse(ended.out)["cases"][0]["samples"] == 300);
}

TEST_CASE("a file that may not grow is an error with its path, and the earlier result stays",
          "[reliability]") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.json");
  REQUIRE(start(host_copy({"--size", "4KiB", "--samples", "3", "-o", file})).code() == 0);
  const std::string before = contents(file);
  const Ended ended = start(host_copy({"--size", "4KiB", "--samples", "5000", "-o", file}), {}, [] {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  CHECK(ended.code() == 1);
  CHECK_THAT(ended.err, ContainsSubstring("cannot write " + file + ": File too large"));
  CHECK(contents(file) == before);
  CHECK(directory.files() == 1);
}

TEST_CASE("a reader of a file that is replaced never finds a part of it", "[reliability]") {
  TemporaryDirectory directory;
  const std::string file = directory.file("run.json");
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), 1);
    exec({"sweep", "--backend", "host", "--size", "1KiB..8KiB", "--samples", "20", "-o", file});
  }
  int status = 0, whole = 0, partial = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const std::string text = contents(file);
    if (text.empty()) continue;  // not there yet
    (json::accept(text) ? whole : partial)++;
  }
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(whole > 0);
  CHECK(partial == 0);
}
