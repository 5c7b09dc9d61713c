// SPDX-License-Identifier: MIT
#include "measure.hpp"

#include "buffers.hpp"
#include "model/diagnosis.hpp"
#include "model/schedule.hpp"
#include "peers.hpp"
#include "trial.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

namespace mgpu {
namespace {

constexpr std::int64_t experiment_samples = 50;
constexpr double experiment_seconds = 0.5;
constexpr double enough_explained = 0.98;  // of the median; what is left is below what is reported

// Everything that lasts for all cases of a run.
class Measurement {
 public:
  Measurement(const Plan& plan, const Machine& machine, const Sampling& sampling, Backend& backend,
              Observer& observer, Watchdog& dog, std::stop_token stop)
      : plan_(plan),
        machine_(machine),
        sampling_(sampling),
        backend_(backend),
        observer_(observer),
        dog_(dog),
        stop_(std::move(stop)),
        peers_(backend),
        buffers_(backend) {
    dog_.on_expiry([this](const char* step, int signal) { tell_stuck(step, signal); });
    for (std::size_t i = 0; i < plan_.cases.size(); ++i)
      if (!plan_.cases[i].skip)
        for (const BufferSpec& spec : make_schedule(plan_.cases[i].what).buffers)
          last_use_[spec] = i;
  }
  ~Measurement() { dog_.on_expiry(nullptr); }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  Results run() {
    for (at_ = 0; at_ < plan_.cases.size() && results_.complete; ++at_) {
      const PlannedCase& planned = plan_.cases[at_];
      if (stop_.stop_requested()) {
        results_.complete = false;
        break;
      }
      auto result = planned.skip || lost_ ? skipped(planned) : measured(planned);
      if (!result) break;
      free_unwanted();
      observer_.finished(*result, results_.complete);
      results_.cases.push_back(std::move(*result));
    }
    return std::move(results_);
  }

 private:
  // What no later case takes would be held for nothing, of a machine that others use too.
  void free_unwanted() {
    if (lost_) return;
    try {
      guarded(dog_, "freeing", [&] {
        buffers_.keep_only([&](const BufferSpec& spec) {
          const auto use = last_use_.find(spec);
          return use != last_use_.end() && use->second > at_;
        });
      });
    } catch (const Error&) {
      lost_ = true;  // it did not come back in time
    }
  }

  CaseResult blank(const PlannedCase& planned) const {
    CaseResult result;
    result.what = planned.what;
    result.key = case_key(planned.what, machine_);
    return result;
  }

  std::optional<CaseResult> skipped(const PlannedCase& planned) const {
    CaseResult result = blank(planned);
    result.outcome = OutcomeKind::skipped;
    result.reason = planned.skip ? planned.skip->reason : "not run";
    result.error_kind = planned.skip ? planned.skip->kind : ErrorKind::runtime;
    return result;
  }

  // Nothing where it was stopped before there was anything to tell.
  std::optional<CaseResult> measured(const PlannedCase& planned) {
    for (const std::string& warning : planned.warnings) observer_.note(warning);
    CaseResult result = blank(planned);
    try {
      open(planned.what);
      result = trial(planned, sampling_, Trial::Depth::full, "");
      if (stop_.stop_requested()) results_.complete = false;
      if (result.samples == 0) return std::nullopt;
      finished_ = result;
      const auto experiments = experiment(result);
      finished_.reset();
      result.causes = diagnose(result, experiments, machine_);
    } catch (const Failed& failed) {
      const Error error = explained(failed.error);
      result = finished_ ? *finished_ : failed.result;
      finished_.reset();
      result.outcome = OutcomeKind::failed;
      result.reason = error.what();
      result.error_kind = error.kind;
      if (!results_.error) results_.error = error;
      lost_ = error.lost || error.kind == ErrorKind::timeout;
    }
    return result;
  }

  // With what the failing call could not know: who has the memory that it lacked, and which card an
  // ordinal is that has to be looked for in a log.
  Error explained(const Error& error) {
    const auto place = static_cast<std::size_t>(error.device.value_or(-1));
    if (place >= machine_.devices.size()) return error;
    std::string message = error.what();
    if (error.kind == ErrorKind::memory) {
      std::vector<std::string> holders;
      for (const MemoryHolder& holder : holders_on(*error.device))
        holders.push_back(holder.bytes
                              ? fmt::format("{} ({})", holder.pid, format_memory(*holder.bytes))
                              : std::to_string(holder.pid));
      if (!holders.empty())
        message += fmt::format("; other processes hold: {}", fmt::join(holders, ", "));
    }
    const Device& device = machine_.devices[place];
    if (error.lost && !device.uuid.empty())
      message += fmt::format("; device {} is {}, {}", device.ordinal, device.uuid, device.pci);
    Error told(error.kind, message, error.device);
    told.lost = error.lost;
    return told;
  }

  std::vector<MemoryHolder> holders_on(int device) {
    try {
      return guarded(dog_, "asking who holds memory",
                     [&] { return backend_.memory_holders(device); });
    } catch (const Error&) {  // too late to be told
      return {};
    }
  }

  // The case without each policy that may cost, for the median alone. Stops where one of them
  // explains it all.
  std::vector<Experiment> experiment(const CaseResult& result) {
    Sampling brief = sampling_;
    brief.samples = experiment_samples;
    brief.seconds = std::min(sampling_.seconds, experiment_seconds);
    brief.warmup = std::max(sampling_.warmup, 2);
    brief.until.reset();
    brief.timeline = false;
    std::vector<Experiment> done;
    for (const Suspect& suspect : suspects(result.what, machine_)) {
      if (stop_.stop_requested()) break;
      PlannedCase planned;
      planned.what = suspect.without;
      try {
        const CaseResult without =
            trial(planned, brief, Trial::Depth::brief, "trying " + suspect.option);
        if (without.samples == 0) break;
        done.push_back({suspect, without.summary});
      } catch (const Failed& failed) {
        // What cannot run beside, for want of memory or of a link, is no failure of the case.
        if (failed.error.lost || failed.error.kind == ErrorKind::timeout) throw;
        continue;
      }
      if (done.back().without.median < (1 - enough_explained) * result.summary.median) break;
    }
    return done;
  }

  struct Failed {
    Error error;
    CaseResult result;  // what was found until then
  };

  CaseResult trial(const PlannedCase& planned, const Sampling& sampling, Trial::Depth depth,
                   const std::string& purpose) {
    Trial trial(planned, machine_, sampling, backend_, peers_, buffers_, dog_);
    current_ = &trial;
    const auto leave = [&] { current_ = nullptr; };
    try {
      trial.run(
          depth, stop_, [&](const std::string& note) { observer_.note(note); },
          [&](const char* phase, double share) {
            observer_.progress({at_, plan_.cases.size(), purpose.empty() ? phase : purpose.c_str(),
                                trial.samples(), share});
          },
          [&] {
            if (depth == Trial::Depth::full) observer_.ready();
          });
    } catch (const Error& error) {
      leave();
      throw Failed{error, trial.result()};
    }
    leave();
    return trial.result();
  }

  void open(const Case& what) {
    std::set<int> devices(what.gpus.begin(), what.gpus.end());
    for (const Place& place : {what.from, what.to})
      if (place.kind == Place::Kind::device) devices.insert(place.index);
    const std::vector<int> ordinals(devices.begin(), devices.end());
    try {
      guarded(dog_, "starting the devices", [&] {
        backend_.open(ordinals, what.wait, what.affinity);
        if (sampling_.counters) backend_.prepare_counting();
      });
    } catch (const Error& error) {
      CaseResult result;
      result.what = what;
      result.key = case_key(what, machine_);
      throw Failed{error, std::move(result)};
    }
  }

  void tell_stuck(const char* step, int signal) {
    std::vector<CaseResult> cases = results_.cases;
    std::string where = step;
    const Trial* trial = current_;
    if (trial) {
      const std::string position = trial->position();
      if (!position.empty()) where += ": " + position;
    }
    if (finished_) {
      cases.push_back(*finished_);
    } else if (trial) {
      CaseResult partial = trial->result();
      // A signal is no failure of the case; without a sample it leaves nothing to tell.
      if (!signal) {
        if (partial.samples == 0) partial.outcome = OutcomeKind::failed;
        partial.reason = where;
        partial.error_kind = ErrorKind::timeout;
      }
      if (!signal || partial.samples > 0) cases.push_back(std::move(partial));
    }
    observer_.stuck(cases,
                    Error(ErrorKind::timeout,
                          fmt::format("timed out after {} s in {}", sampling_.timeout, where)),
                    signal);
  }

  const Plan& plan_;
  const Machine& machine_;
  const Sampling& sampling_;
  Backend& backend_;
  Observer& observer_;
  Watchdog& dog_;
  const std::stop_token stop_;
  Peers peers_;
  Buffers buffers_;
  Results results_;
  std::map<BufferSpec, std::size_t> last_use_;  // the last case that takes such a buffer
  std::size_t at_ = 0;
  bool lost_ = false;
  std::optional<CaseResult> finished_;  // the case whose experiments are running
  std::atomic<const Trial*> current_{nullptr};
};

}  // namespace
Results measure(const Plan& plan, const Machine& machine, const Sampling& sampling,
                Backend& backend, Observer& observer, Watchdog& dog, std::stop_token stop) {
  return Measurement(plan, machine, sampling, backend, observer, dog, std::move(stop)).run();
}

}  // namespace mgpu
