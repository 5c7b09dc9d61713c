// SPDX-License-Identifier: MIT
// Every place that a report is written to: stdout, and the files of -o. Knows when, not what.
#pragma once

#include "app.hpp"
#include "model/request.hpp"
#include "model/result.hpp"
#include "output.hpp"
#include "report/report.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// Whether text on stdout is coloured.
bool wants_color(const Request& request, const Console& console);

/// Writes to stdout. Throws Error{runtime}; a reader that has gone is no error.
void print(const Console& console, std::string_view text);

/// Writes to stderr, without what would drive a terminal: arguments and files may hold any bytes.
void complain(const Console& console, std::string text);

/// The bytes of a report in any format, pictures included. Blocking; throws Error.
std::string rendered(Format format, const Report& report, const RenderOptions& options);

/// Whether there is something to show: without a result an error says it all.
bool has_result(const Report& report);

/// An output that cannot be written costs neither the other outputs nor the rest of the run:
/// `failed` is told, once for each error. All writing blocks.
class Outputs {
 public:
  Outputs(const Request& request, const Console& console, std::function<void(const Error&)> failed)
      : request_(request), console_(console), failed_(std::move(failed)) {}

  /// Opens these files and changes none. Throws Error.
  void open(std::span<const OutputSpec> specs);

  /// Adds to every .jsonl.
  void append(std::string_view line);

  /// Whether `update` writes anything.
  bool updated() const;

  /// Writes regular files anew, but for pictures.
  void update(const Report& report);

  /// What .jsonl files hold: a line a case, which went there as it ended, or the report.
  enum class Lines { cases, report };

  /// Writes all files. Without a result none is drawn or takes the place of an earlier result.
  void finish(const Report& report, Lines lines);

  /// Writes to stdout; without a result only JSON, which holds the error.
  void print_report(const Report& report);

  /// For what else is written.
  void attempt(const std::function<void()>& write);

  /// What `failed` was told last.
  const std::string& failure() const { return told_; }

 private:
  const Request& request_;
  const Console& console_;
  std::function<void(const Error&)> failed_;
  std::vector<Output> files_;
  std::string told_;
};

}  // namespace mgpu
