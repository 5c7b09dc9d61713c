// SPDX-License-Identifier: MIT
// Plan -> results: the only loop with time in it. Prints nothing; whoever wants to know passes an
// Observer.
#pragma once

#include "backend/backend.hpp"
#include "model/plan.hpp"
#include "model/result.hpp"
#include "watchdog.hpp"

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace mgpu {

struct Progress {
  std::size_t current = 0, cases = 0;  ///< counted from 0
  const char* phase = "";              ///< "placing", "warming up", "sampling", ...
  std::int64_t samples = 0;
  double share = 0;  ///< of the current case's samples or seconds, 0 to 1
};

/// Told of what happens outside the samples; every call comes from the coordinating thread, but for
/// `stuck`.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void progress(const Progress&) {}
  virtual void note(const std::string&) {}      ///< something asked for that is not so here
  virtual void about_to(const std::string&) {}  ///< what begins may never return
  /// A case is placed and warm: its sampling begins when this returns, and may wait for others'.
  virtual void ready() {}
  /// `complete`: it was not cut short by a stop.
  virtual void finished(const CaseResult& result, bool complete) { (void)result, (void)complete; }
  /// On the watchdog's thread: a step does not return. `finished_cases` holds all that ended and
  /// what is known of the one that hangs. The product's writes the report and leaves the process;
  /// where it returns, measure goes on once the step comes back.
  virtual void stuck(const std::vector<CaseResult>& finished_cases, const Error& why, int signal) {
    (void)finished_cases, (void)why, (void)signal;
  }
};

struct Results {
  std::vector<CaseResult> cases;
  bool complete = true;        ///< false: stopped before the end
  std::optional<Error> error;  ///< of the first failed case
};

/// Runs the cases in order. A case that fails is a result and the rest goes on, unless the device
/// is lost. Blocking, until done or `stop` is requested: then the running sample is finished and
/// what was found is returned. Opens contexts on the devices in use alone. Never throws Error.
Results measure(const Plan& plan, const Machine& machine, const Sampling& sampling,
                Backend& backend, Observer& observer, Watchdog& dog, std::stop_token stop);

}  // namespace mgpu
