// SPDX-License-Identifier: MIT
#include "app.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace {

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another process made what we share so
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, -1);
      continue;
    }
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// A result file that took the number of a closed stdout would get what is meant for that. Opened
// the wrong way round, so that its use still fails.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

std::string read_all(int fd) {
  std::string text;
  char block[65536];
  for (ssize_t length; (length = read(fd, block, sizeof block)) != 0;) {
    if (length > 0)
      text.append(block, static_cast<std::size_t>(length));
    else if (errno != EINTR)
      break;
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large is an errno as well
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an errno, not the end
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || *term == '\0' || std::string_view(term) == "dumb";
  mgpu::Console console;
  console.out = [](std::string_view bytes) { return write_all(STDOUT_FILENO, bytes); };
  console.err = [](std::string_view bytes) { write_all(STDERR_FILENO, bytes); };
  console.in = [] { return read_all(STDIN_FILENO); };
  console.leave = [](int code) { _Exit(code); };
  console.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = isatty(STDERR_FILENO) == 1 && !dumb;
  winsize size{};
  if (console.out_is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    console.width = size.ws_col;
  console.no_color = dumb || (no_color != nullptr && *no_color != '\0');
  console.handle_signals = true;
  return mgpu::run_app({argv + 1, argv + argc}, console, mgpu::builtin_backends(), mgpu::join_team);
}
