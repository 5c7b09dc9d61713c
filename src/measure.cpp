// SPDX-License-Identifier: MIT
#include "measure.hpp"

#include "model/schedule.hpp"
#include "trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace mgpu {
void check_memory(const Case& what, const Machine& machine, const std::function<Bytes(int)>& free,
                  bool oversubscribe) {
  // CPU devices of one NUMA node share its memory.
  const bool host = machine.backend == BackendKind::host;
  struct Need {
    Bytes bytes = 0, managed = 0;
    int device = 0;
  };
  std::map<int, Need> places;
  for (const MemoryNeed& need : memory_needed(what)) {
    const int place = host ? machine.devices[static_cast<std::size_t>(need.device)].numa.value_or(0)
                           : need.device;
    Need& sum = places[place];
    sum.bytes = checked_add(sum.bytes, need.bytes).value_or(~Bytes{0});
    sum.managed = checked_add(sum.managed, need.managed).value_or(~Bytes{0});
    sum.device = need.device;
  }
  const auto usable = [&](int device) { return free(device) / 10 * 9; };
  Bytes spilled = 0;
  for (const auto& [place, need] : places) {
    const Bytes have = usable(need.device);
    if (need.bytes <= have) continue;
    const Bytes over = need.bytes - have;
    if (oversubscribe && !host && over <= need.managed) {
      spilled = checked_add(spilled, over).value_or(~Bytes{0});
      if (spilled <= usable(-1)) continue;
    }
    throw Error(
        ErrorKind::memory,
        fmt::format("not enough memory on {} {}: need {}, have {} (90% of what is free); choose a "
                    "smaller --size{}",
                    host ? "NUMA node" : "GPU", place, format_memory(need.bytes),
                    format_memory(have),
                    need.managed > 0 && !host && !oversubscribe ? ", or --oversubscribe" : ""),
        need.device);
  }
}

Results measure(const Plan& plan, const Machine& machine, const Sampling& sampling,
                Backend& backend, Observer& observer, Watchdog& dog, std::stop_token stop) {
  Results results;
  std::atomic<Trial*> current{nullptr};
  dog.on_expiry([&](const char* step, int signal) {
    std::vector<CaseResult> cases = results.cases;
    std::string where = step;
    if (Trial* trial = current) {
      CaseResult partial = trial->result();
      const std::string position = trial->position();
      if (!position.empty()) where += ": " + position;
      partial.outcome = partial.samples > 0 ? OutcomeKind::measured : OutcomeKind::failed;
      partial.reason = where;
      partial.error_kind = ErrorKind::timeout;
      cases.push_back(std::move(partial));
    }
    observer.stuck(cases,
                   Error(ErrorKind::timeout,
                         fmt::format("timed out after {} s in {}", sampling.timeout, where)),
                   signal);
  });

  bool lost = false;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& planned = plan.cases[i];
    if (stop.stop_requested()) {
      results.complete = false;
      break;
    }
    CaseResult result;
    result.what = planned.what;
    result.key = case_key(planned.what, machine);
    if (planned.skip || lost) {
      result.outcome = OutcomeKind::skipped;
      result.reason = planned.skip ? planned.skip->reason : "not run";
      result.error_kind = planned.skip ? planned.skip->kind : ErrorKind::runtime;
    } else {
      for (const std::string& warning : planned.warnings) observer.note(warning);
      Trial trial(planned, machine, sampling, backend, dog);
      current = &trial;
      try {
        std::set<int> devices(planned.what.gpus.begin(), planned.what.gpus.end());
        for (const Place& place : {planned.what.from, planned.what.to})
          if (place.kind == Place::Kind::device) devices.insert(place.device);
        const std::vector<int> ordinals(devices.begin(), devices.end());
        guarded(dog, "starting the devices", [&] { backend.open(ordinals, planned.what.wait); });
        trial.run(
            stop, [&](const std::string& note) { observer.note(note); },
            [&](const char* phase, double share) {
              observer.progress({i, plan.cases.size(), phase, trial.samples(), share});
            });
        result = trial.result();
        if (stop.stop_requested()) results.complete = false;
        if (result.samples == 0) {
          current = nullptr;
          break;  // stopped before there was anything to tell
        }
      } catch (const Error& error) {
        result = trial.result();
        result.outcome = OutcomeKind::failed;
        result.reason = error.what();
        result.error_kind = error.kind;
        if (!results.error) results.error = error;
        lost = error.lost || error.kind == ErrorKind::timeout;
      }
      current = nullptr;
    }
    observer.finished(result);
    results.cases.push_back(std::move(result));
  }
  dog.on_expiry(nullptr);
  return results;
}

}  // namespace mgpu
