// SPDX-License-Identifier: MIT
// One run of a command: the report as it grows, and every place that it is written to.
#pragma once

#include "app.hpp"
#include "measure.hpp"
#include "model/request.hpp"
#include "model/result.hpp"
#include "outputs.hpp"
#include "report/report.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// The time of day, RFC 3339.
std::string utc_now();

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

  /// `wait` gets the position in the plan of a case, and returns when its sampling may begin.
  void on_ready(std::function<void(std::size_t)> wait) { ready_ = std::move(wait); }

  /// `tell` gets a report of each case alone as it ends, also of one that was kept or cut short;
  /// `stuck` that of a case that does not return, on the watchdog's thread.
  void on_case(std::function<void(const Report&)> tell, std::function<void(const Report&)> stuck) {
    tell_ = std::move(tell);
    tell_stuck_ = std::move(stuck);
  }

  /// `alive` is called at least once between two steps that take long.
  void on_progress(std::function<void()> alive) { alive_ = std::move(alive); }

  /// The positions in the plan of the cases that will be measured, in order.
  void expect(std::vector<std::size_t> positions) { positions_ = std::move(positions); }

  void progress(const Progress& now) override;
  void note(const std::string& text) override;
  void about_to(const std::string& what) override;
  void ready() override { ready_(position()); }
  void finished(const CaseResult& result, bool complete) override;
  void stuck(const std::vector<CaseResult>& cases, const Error& why, int signal) override;

  /// Writes the report to stdout and to every output, then the error if there is one; gives the
  /// exit code.
  int publish();

 private:
  std::size_t position() const;
  void say(const std::string& text);
  void clear_progress();
  void add(std::size_t position, CaseResult result);
  Report document(const CaseResult& result, bool complete);
  void failed(const Error& error);

  const Request& request_;
  const Console& console_;
  Report report_;
  std::vector<std::size_t> order_;      // of report_.cases: their positions in the plan, ascending
  std::vector<std::size_t> positions_;  // of the cases to measure
  std::size_t measured_ = 0;
  Nanos began_ = 0;
  std::function<void(CaseResult&)> judge_ = [](CaseResult&) {};
  std::function<int()> received_ = [] { return 0; };
  std::function<void(std::size_t)> ready_ = [](std::size_t) {};
  std::function<void(const Report&)> tell_ = [](const Report&) {}, tell_stuck_ = tell_;
  std::function<void()> alive_ = [] {};
  Outputs outputs_;
  std::optional<Output> trace_;
  bool progress_shown_ = false;
};

}  // namespace mgpu
