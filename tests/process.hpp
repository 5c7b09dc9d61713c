// SPDX-License-Identifier: MIT
// The real binary, started as a shell would.
#pragma once

#include "environment.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace mgpu {

struct Ended {
  std::string out, err;
  int status = 0;  // of waitpid
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }
};

inline void exec(const std::vector<std::string>& args) {
  std::vector<char*> argv = {const_cast<char*>(MGPU_BINARY)};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execv(MGPU_BINARY, argv.data());
  _exit(127);
}

// Runs mgpu to its end; `seen` is told of what stderr holds so far and may signal the process,
// `prepare` changes the process before it becomes mgpu.
inline Ended start(const std::vector<std::string>& args,
                   const std::function<void(pid_t, const std::string&)>& seen = {},
                   const std::function<void()>& prepare = {}) {
  std::array<int, 2> out{}, err{};
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(err.data(), O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    dup2(err[1], 2);
    if (prepare) prepare();
    exec(args);
  }
  close(out[1]);
  close(err[1]);
  Ended ended;
  std::array<pollfd, 2> fds = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    poll(fds.data(), 2, -1);
    for (std::size_t i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 4096> block{};
      const ssize_t length = read(fds[i].fd, block.data(), block.size());
      if (length <= 0)
        fds[i].fd = -1;
      else
        (i == 0 ? ended.out : ended.err).append(block.data(), static_cast<std::size_t>(length));
      if (seen) seen(child, ended.err);
    }
  }
  waitpid(child, &ended.status, 0);
  close(out[0]);
  close(err[0]);
  return ended;
}

inline std::vector<std::string> host_copy(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"copy", "--backend", "host"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

}  // namespace mgpu
