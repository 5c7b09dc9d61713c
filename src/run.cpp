// SPDX-License-Identifier: MIT
#include "run.hpp"

#include "gate.hpp"
#include "model/sweep.hpp"
#include "version.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace mgpu {
namespace {

bool draws_trace(const Request& request) {
  return !request.timeline.empty() && request.timeline != "-";
}

// The same report with this case alone. The others are not copied, they may be many.
Report report_of(Report& report, const CaseResult& result) {
  std::vector<CaseResult> all = std::exchange(report.cases, {});
  Report one = report;
  report.cases = std::move(all);
  one.cases = {result};
  return one;
}

}  // namespace

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()) % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms.count());
}

Run::Run(const Request& request, const Console& console)
    : request_(request),
      console_(console),
      began_(steady_now()),
      outputs_(request, console, [this](const Error& error) { failed(error); }) {
  report_.tool_version = version;
  report_.features.assign(features.begin(), features.end());
  report_.command = request.argv;
  report_.started = utc_now();
  report_.machine.backend = request.backend;
}

void Run::open() {
  std::vector<OutputSpec> files = request_.outputs;
  if (!request_.resume.empty()) files.push_back({Format::jsonl, request_.resume});
  outputs_.open(files);
  if (draws_trace(request_))
    trace_.emplace(OutputSpec{Format::json, request_.timeline}, false, true);
}

void Run::keep(std::size_t position, CaseResult result) {
  judge_(result);
  tell_(document(result, true));
  add(position, std::move(result));
}

// In the plan, of the case that is measured.
std::size_t Run::position() const {
  return measured_ < positions_.size() ? positions_[measured_] : measured_;
}

void Run::add(std::size_t position, CaseResult result) {
  const auto place = std::ranges::upper_bound(order_, position);
  report_.cases.insert(report_.cases.begin() + (place - order_.begin()), std::move(result));
  order_.insert(place, position);
  report_.ended = utc_now();
}

void Run::progress(const Progress& now) {
  alive_();
  if (request_.quiet || !console_.err_is_terminal) return;
  std::string line = fmt::format("{} {:3.0f}%", now.phase, 100 * std::min(now.share, 1.0));
  if (now.samples > 0) line += fmt::format(", {} samples", now.samples);
  if (now.cases > 1) {
    line = fmt::format("case {} of {}: {}", now.current + 1, now.cases, line);
    if (now.current > 0) {
      const double each =
          static_cast<double>(steady_now() - began_) / static_cast<double>(now.current);
      line += fmt::format(", about {:.0f} s left",
                          each * static_cast<double>(now.cases - now.current) / 1e9);
    }
  }
  // A line that wraps could not be wiped.
  const auto room = static_cast<std::size_t>(console_.width > 1 ? console_.width - 1 : 79);
  console_.err("\r\x1b[K" + line.substr(0, room));
  progress_shown_ = true;
}

void Run::note(const std::string& text) {
  // In a sweep many cases may have the same to say.
  if (std::ranges::find(report_.warnings, text) != report_.warnings.end()) return;
  report_.warnings.push_back(text);
  if (!request_.quiet) say(fmt::format("mgpu: note: {}\n", text));
}

void Run::about_to(const std::string& what) {
  if (!request_.quiet) say(fmt::format("mgpu: {}\n", what));
}

Report Run::document(const CaseResult& result, bool complete) {
  Report one = report_of(report_, result);
  one.complete = complete;
  if (!complete) one.exit_code = report_.exit_code ? report_.exit_code : 128 + received_();
  if (result.outcome == OutcomeKind::failed) {
    const ErrorKind kind = result.error_kind.value_or(ErrorKind::runtime);
    one.error = ErrorInfo{kind, result.reason, std::nullopt};
    one.exit_code = exit_code(kind);
  } else if (auto slow = slower_than_wanted(result, report_.machine.backend)) {
    one.exit_code = graver(one.exit_code, exit_code(slow->kind));
    if (!one.error) one.error = std::move(slow);
  }
  return one;
}

void Run::finished(const CaseResult& found, bool complete) {
  CaseResult result = found;
  judge_(result);
  add(position(), result);
  ++measured_;
  report_.complete = report_.complete && complete;
  if (!complete && report_.exit_code == 0) report_.exit_code = 128 + received_();
  // What a sweep did not run, or not to its end, is left for --resume.
  const bool not_run =
      result.outcome == OutcomeKind::skipped && result.error_kind == ErrorKind::runtime;
  const Report one = document(result, complete);
  if (request_.command == Command::copy || (complete && !not_run))
    outputs_.append(render(Format::jsonl, one));
  tell_(one);
  if (!outputs_.updated()) return;
  fill_efficiencies(report_.cases);
  outputs_.update(report_);
}

void Run::stuck(const std::vector<CaseResult>& cases, const Error& why, int signal) {
  report_.complete = false;
  if (signal) {
    report_.exit_code = 128 + signal;
  } else {
    report_.error = ErrorInfo{why.kind, why.what(), why.device};
    report_.exit_code = exit_code(why.kind);
  }
  if (cases.size() > measured_) {
    CaseResult result = cases.back();
    judge_(result);
    add(position(), result);
    const Report one = document(result, false);
    if (request_.command == Command::copy) outputs_.append(render(Format::jsonl, one));
    tell_stuck_(one);
  }
  console_.leave(publish());
}

int Run::publish() {
  report_.ended = utc_now();
  fill_efficiencies(report_.cases);
  clear_progress();
  outputs_.finish(
      report_, report_.kind == ReportKind::trials ? Outputs::Lines::cases : Outputs::Lines::report);
  const bool timeline = has_result(report_);
  if (trace_ && timeline) outputs_.attempt([&] { trace_->write(render_trace(report_)); });
  outputs_.print_report(report_);
  if (request_.timeline == "-" && timeline)
    outputs_.attempt([&] { print(console_, "\n" + render_timeline(report_)); });
  if (report_.error && report_.error->message != outputs_.failure())
    say(fmt::format("mgpu: error: {}\n", report_.error->message));
  return report_.exit_code;
}

void Run::say(const std::string& text) {
  clear_progress();
  complain(console_, text);
}

void Run::clear_progress() {
  if (progress_shown_) console_.err("\r\x1b[K");
  progress_shown_ = false;
}

void Run::failed(const Error& error) {
  say(fmt::format("mgpu: error: {}\n", error.what()));
  report_.exit_code = graver(report_.exit_code, exit_code(error.kind));
  if (!report_.error) report_.error = ErrorInfo{error.kind, error.what(), std::nullopt};
}

}  // namespace mgpu
