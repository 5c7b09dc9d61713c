// SPDX-License-Identifier: MIT
#include "pictures.hpp"

#include "model/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace mgpu {
namespace {

const char* program_of(Painter painter) {
  return painter == Painter::gnuplot ? "gnuplot" : "dot";
}

struct Pipe {
  std::array<int, 2> ends = {-1, -1};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error(ErrorKind::runtime, fmt::format("pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

// Appends what can be read now; false at the end.
bool drain(int fd, std::string& text) {
  std::array<char, 1 << 16> block;
  const ssize_t length = read(fd, block.data(), block.size());
  if (length < 0) return errno == EINTR;
  text.append(block.data(), static_cast<std::size_t>(length));
  return length > 0;
}

}  // namespace

void require_painter(Painter painter) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (access((std::filesystem::path(folder) / program_of(painter)).c_str(), X_OK) == 0) return;
  }
  throw Error(ErrorKind::unavailable,
              painter == Painter::gnuplot
                  ? "svg and png are drawn by gnuplot, which is not installed: install the package "
                    "gnuplot-nox, or write a .gp file"
                  : "topologies are drawn by Graphviz's dot, which is not installed: install the "
                    "package graphviz, or write a .dot file");
}

std::string draw(Painter painter, Format format, const std::string& script) {
  require_painter(painter);
  const char* const program = program_of(painter);
  Pipe in, out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.ends[1], STDERR_FILENO);
  std::string command = program,
              option = painter == Painter::gnuplot ? "-" : fmt::format("-T{}", name(format));
  char* argv[] = {command.data(), option.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, program, &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw Error(ErrorKind::runtime,
                fmt::format("cannot start {}: {}", program, std::strerror(failed)));
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);

  std::string picture, said;
  std::string_view rest = script;
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    std::array<pollfd, 3> fds = {pollfd{in.ends[1], POLLOUT, 0}, pollfd{out.ends[0], POLLIN, 0},
                                 pollfd{err.ends[0], POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0) {
      const ssize_t written =
          write(in.ends[1], rest.data(), std::min<std::size_t>(rest.size(), 4096));
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
      if (rest.empty() || written < 0) in.close_end(1);
    }
    if (fds[1].revents != 0 && !drain(out.ends[0], picture)) out.close_end(0);
    if (fds[2].revents != 0 && !drain(err.ends[0], said)) err.close_end(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || picture.empty())
    throw Error(ErrorKind::runtime,
                fmt::format("{} drew nothing: {}", program, said.substr(0, said.find('\n'))));
  return picture;
}

}  // namespace mgpu
