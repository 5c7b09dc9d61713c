// SPDX-License-Identifier: MIT
// One case from allocation to the last check: the passes, in their order.
#pragma once

#include "backend/backend.hpp"
#include "buffers.hpp"
#include "crew.hpp"
#include "model/plan.hpp"
#include "model/result.hpp"
#include "peers.hpp"
#include "phases.hpp"
#include "timeline.hpp"
#include "watchdog.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace mgpu {

class Trial {
 public:
  /// How much is done beside placing, warming up and sampling.
  enum class Depth {
    full,   ///< checks, the second set, counters and the harness' cost
    brief,  ///< nothing: for the median alone
  };

  Trial(const PlannedCase& planned, const Machine& machine, const Sampling& sampling,
        Backend& backend, Peers& peers, Buffers& pool, Watchdog& dog);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Places, warms up, samples, and checks; blocking, to the end or until `stop` is requested.
  /// `progress(phase, share)` is told outside the samples, `note` of what could not be had but is
  /// not needed; sampling begins when `ready` returns. Throws Error; what was found so far stays.
  void run(Depth depth, const std::stop_token& stop,
           const std::function<void(const std::string&)>& note,
           const std::function<void(const char*, double)>& progress,
           const std::function<void()>& ready);

  /// What is known so far, summarized. While the trial's thread is at rest or blocked.
  CaseResult result() const;
  std::int64_t samples() const { return samples_.count(); }

  /// What the lanes of the running pass are doing, empty between crews. From any thread.
  std::string position() const;

 private:
  void connect(const std::function<void(const std::string&)>& note);
  void allocate();
  void place();
  void each_lane(const char* step, const std::function<void(const Lane&)>& work);
  void fill_sources();
  void fill_destinations();
  void check();
  [[noreturn]] void refuse(const Lane& lane, const Check& found);
  PassResult pass(Crew& crew, bool marks);
  void sample(Crew& crew, const std::stop_token& stop,
              const std::function<void(const char*, double)>& progress);
  void keep_marks(const Crew& crew, const PassResult& one);
  void event_samples(Crew& crew, const std::stop_token& stop,
                     const std::function<void(const char*, double)>& progress);
  void count_migrations(Crew& crew, const std::function<void(const std::string&)>& note);
  void measure_harness(const std::stop_token& stop);
  void observe_devices(std::optional<Telemetry> DeviceResult::*moment);
  Site toucher(const Range& range, int executing, Site home) const;
  Part part(const Range& range) const;

  const Case what_;
  const Machine& machine_;
  const Sampling& sampling_;
  Backend& backend_;
  Peers& peers_;
  Buffers& pool_;
  Watchdog& dog_;
  const Schedule schedule_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::uint64_t key_ = 1,
                previous_key_ = 1;  // of the pattern in the source, and of the one before it
  SampleSeries samples_;
  Phases phases_;
  Timeline timeline_;
  std::map<int, DeviceResult> states_;  // by ordinal: what NVML tells before and after
  CaseResult result_;
  bool intact_ = false;  // it ran to its end, so its buffers may serve another case
  std::atomic<const Crew*> crew_{nullptr};
  std::atomic<int> touching_{-1};  // the lane whose memory is filled or checked
};

}  // namespace mgpu
