// SPDX-License-Identifier: MIT
#include "output.hpp"

#include "model/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mgpu {
namespace {

// The end of the last whole line: a run that was killed may have left a fragment behind it.
off_t whole_lines(int fd, off_t size) {
  std::array<char, 4096> block{};
  while (size > 0) {
    const auto length = std::min<off_t>(size, static_cast<off_t>(block.size()));
    if (pread(fd, block.data(), static_cast<std::size_t>(length), size - length) != length)
      return size;
    for (off_t i = length; i > 0; --i)
      if (block[static_cast<std::size_t>(i - 1)] == '\n') return size - length + i;
    size -= length;
  }
  return 0;
}

// The number that a path names, where it is one of this process' own descriptors. Opening such a
// path again would give a file a position of its own, and a rename would take the file away from
// its other holders.
std::optional<int> descriptor_of(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) return number;
  }
  return std::nullopt;
}

// Behind all links, also where nothing is there yet: a rename must not take the place of a link.
std::string behind_links(const std::string& path) {
  constexpr int most = 40;  // as the kernel follows
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; i < most && std::filesystem::is_symlink(target, error); ++i) {
    const auto next = std::filesystem::read_symlink(target, error);
    if (error) break;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

}  // namespace

Output::Output(const OutputSpec& spec, bool append, bool force) : spec_(spec), target_(spec.path) {
  if (const auto descriptor = descriptor_of(spec_.path)) {
    kind_ = Kind::stream;
    fd_ = fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
    if (fd_ < 0) fail("open");
    if ((fcntl(fd_, F_GETFL) & O_ACCMODE) == O_RDONLY) {
      errno = EBADF;
      fail("write");
    }
    return;
  }
  struct stat info {};
  const bool exists = stat(spec_.path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    throw Error(ErrorKind::usage,
                fmt::format("-o {}: that is a directory, name a file in it", spec_.path));
  if (exists && !S_ISREG(info.st_mode)) {
    kind_ = Kind::stream;
    fd_ = open(spec_.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail("open");
    return;
  }
  if (spec_.format == Format::jsonl) {
    kind_ = Kind::appended;
    if (exists && info.st_size > 0 && !append && !force)
      throw Error(
          ErrorKind::usage,
          fmt::format(
              "-o {}: the file has results already: add --append for another round, or --force to "
              "start anew",
              spec_.path));
    truncate_ = force && !append;
    fd_ = open(spec_.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("open");
    return;
  }
  if (exists && access(spec_.path.c_str(), W_OK) != 0) fail("open");
  target_ = behind_links(spec_.path);
  replaces_ = exists;
  holds_something_ = exists && info.st_size > 0;
  if (exists) mode_ = info.st_mode & 07777;
  temporary_ = fmt::format("{}.{}.tmp", target_, getpid());
  open_temporary();
  close(std::exchange(fd_, -1));
  unlink(temporary_.c_str());
}

Output::~Output() {
  if (fd_ >= 0) close(fd_);
}

Output::Output(Output&& other) noexcept
    : spec_(std::move(other.spec_)),
      kind_(other.kind_),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      mode_(other.mode_),
      replaces_(other.replaces_),
      holds_something_(other.holds_something_),
      fd_(std::exchange(other.fd_, -1)),
      fresh_(other.fresh_),
      truncate_(other.truncate_) {}

void Output::fail(const char* what) const {
  throw Error(ErrorKind::runtime,
              fmt::format("cannot {} {}: {}", what, spec_.path, std::strerror(errno)));
}

void Output::open_temporary() {
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_);
  if (fd_ < 0) fail("write");
  if (replaces_) fchmod(fd_, mode_);  // the mode of what it replaces, whatever the umask
}

void Output::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // its other holder made it so
      pollfd writable{fd_, POLLOUT, 0};
      poll(&writable, 1, -1);
      continue;
    }
    if (written < 0 && errno == EPIPE && kind_ == Kind::stream)
      return;  // its reader has seen enough
    if (written < 0) fail("write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Output::append(std::string_view bytes) {
  struct stat info {};
  if (fstat(fd_, &info) != 0) fail("write");
  off_t end = info.st_size;
  if (fresh_) {
    end = truncate_ ? 0 : whole_lines(fd_, end);
    if (ftruncate(fd_, end) != 0) fail("write");
  }
  // What is written to a file without a name is gone with the process.
  if (info.st_nlink == 0) {
    errno = ENOENT;
    fail("write");
  }
  try {
    write_all(bytes);
  } catch (const Error&) {
    // A part of a line, with other lines behind it once there is room again, would spoil them all.
    (void)!ftruncate(fd_, end);
    throw;
  }
}

void Output::write(std::string_view bytes) {
  switch (kind_) {
    case Kind::stream:
      write_all(bytes);
      break;
    case Kind::appended:
      append(bytes);
      break;
    case Kind::replaced:
      // Renamed over what is there, so that a reader finds the old bytes or the new ones.
      open_temporary();
      try {
        write_all(bytes);
        if (close(std::exchange(fd_, -1)) != 0) fail("write");
        if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace");
      } catch (...) {
        if (fd_ >= 0) close(std::exchange(fd_, -1));
        unlink(temporary_.c_str());
        throw;
      }
      break;
  }
  fresh_ = false;
}

}  // namespace mgpu
