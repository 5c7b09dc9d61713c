// SPDX-License-Identifier: MIT
#include "output.hpp"

#include "model/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
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

}  // namespace

Output::Output(const OutputSpec& spec, bool append, bool force) : spec_(spec), target_(spec.path) {
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
  std::error_code ignored;
  if (exists) {
    if (access(spec_.path.c_str(), W_OK) != 0) fail("open");
    const auto resolved = std::filesystem::canonical(spec_.path, ignored);
    if (!ignored) target_ = resolved.string();
  }
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
}

void Output::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE && kind_ == Kind::stream)
      return;  // its reader has seen enough
    if (written < 0) fail("write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Output::write(std::string_view bytes) {
  switch (kind_) {
    case Kind::stream:
      write_all(bytes);
      break;
    case Kind::appended:
      if (fresh_) {
        struct stat info {};
        if (fstat(fd_, &info) != 0) fail("write");
        if (ftruncate(fd_, truncate_ ? 0 : whole_lines(fd_, info.st_size)) != 0) fail("write");
      }
      write_all(bytes);
      break;
    case Kind::replaced:
      // Renamed over what is there, so that a reader finds the old bytes or the new ones.
      open_temporary();
      try {
        write_all(bytes);
        if (close(std::exchange(fd_, -1)) != 0) fail("write");
        if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace");
      } catch (...) {
        unlink(temporary_.c_str());
        throw;
      }
      break;
  }
  fresh_ = false;
}

}  // namespace mgpu
