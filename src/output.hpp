// SPDX-License-Identifier: MIT
// The files of -o: checked before anything runs, whole at any moment. Knows paths and bytes, not
// what is in them.
#pragma once

#include "model/request.hpp"

#include <string>
#include <string_view>

namespace mgpu {

/// One output. Regular files are replaced by rename, `.jsonl` files are appended to, anything else
/// (a pipe, a terminal, /dev/fd/3) is written directly, once. All members throw Error{runtime}
/// naming the path where it cannot be written.
class Output {
 public:
  /// Makes sure that the path can be written and changes nothing that is there. Error{usage} for an
  /// existing non-empty `.jsonl` without `append` or `force`, and for a directory.
  Output(const OutputSpec& spec, bool append, bool force);
  ~Output();
  Output(Output&& other) noexcept;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Format format() const { return spec_.format; }

  /// Whether the bytes of every case go out as it ends; else once, at the end.
  bool incremental() const { return kind_ != Kind::stream; }

  /// Whether a regular file with something in it would be replaced.
  bool holds_something() const { return kind_ == Kind::replaced && holds_something_; }

  /// Puts `bytes` in the place of what was there (regular files, pipes), or behind it (`.jsonl`,
  /// one write each). Blocking.
  void write(std::string_view bytes);

 private:
  enum class Kind { replaced, appended, stream };

  [[noreturn]] void fail(const char* what) const;
  void open_temporary();
  void write_all(std::string_view bytes);
  void append(std::string_view bytes);

  OutputSpec spec_;
  Kind kind_ = Kind::replaced;
  std::string target_;     // the path behind all links, which a rename must not replace
  std::string temporary_;  // beside it; exists during a write
  unsigned mode_ = 0666;
  bool replaces_ = false, holds_something_ = false;
  int fd_ = -1;
  bool fresh_ = true;      // nothing written yet
  bool truncate_ = false;  // --force
};

}  // namespace mgpu
