// SPDX-License-Identifier: MIT
// One run of a command: the report as it grows, and every place that it is written to.
#pragma once

#include "app.hpp"
#include "measure.hpp"
#include "model/request.hpp"
#include "model/result.hpp"
#include "output.hpp"
#include "report/report.hpp"

#include <functional>
#include <optional>
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

class Run : public Observer {
 public:
  Run(const Request& request, const Console& console);

  /// Opens all outputs and changes none. Throws Error.
  void open();

  Report& report() { return report_; }

  /// Adds a result of an earlier run as the case at `position` of the plan.
  void keep(std::size_t position, CaseResult result);

  /// `received` gives the signal that cut the run short, or 0.
  void on_signal(std::function<int()> received) { received_ = std::move(received); }

  /// `judge` completes each result before it joins the report, also one that was kept.
  void on_result(std::function<void(CaseResult&)> judge) { judge_ = std::move(judge); }

  /// `wait` returns when sampling may begin.
  void on_ready(std::function<void()> wait) { ready_ = std::move(wait); }

  /// `tell` gets a report of each case alone as it ends, also of one that was cut short.
  void on_case(std::function<void(const Report&)> tell) { tell_ = std::move(tell); }

  /// The positions in the plan of the cases that will be measured, in order.
  void expect(std::vector<std::size_t> positions) { positions_ = std::move(positions); }

  void progress(const Progress& now) override;
  void note(const std::string& text) override;
  void about_to(const std::string& what) override;
  void ready() override { ready_(); }
  void finished(const CaseResult& result, bool complete) override;
  void stuck(const std::vector<CaseResult>& cases, const Error& why, int signal) override;

  /// Writes the report to stdout and to every output, then the error if there is one; gives the
  /// exit code.
  int publish();

 private:
  void say(const std::string& text);
  void clear_progress();
  void add(std::size_t position, CaseResult result);
  Report document(const CaseResult& result, bool complete);
  void append(const Report& one);
  RenderOptions options(bool for_stdout) const;
  void attempt(const std::function<void()>& write);

  const Request& request_;
  const Console& console_;
  Report report_;
  std::vector<std::size_t> order_;      // of report_.cases: their positions in the plan, ascending
  std::vector<std::size_t> positions_;  // of the cases to measure
  std::size_t measured_ = 0;
  Nanos began_ = 0;
  std::function<void(CaseResult&)> judge_ = [](CaseResult&) {};
  std::function<int()> received_ = [] { return 0; };
  std::function<void()> ready_ = [] {};
  std::function<void(const Report&)> tell_ = [](const Report&) {};
  std::vector<Output> outputs_;
  std::optional<Output> trace_;
  bool progress_shown_ = false;
  std::string told_;  // the output's error that was said last
};

}  // namespace mgpu
