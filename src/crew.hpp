// SPDX-License-Identifier: MIT
// The threads that drive the lanes of a schedule through one pass after another, and what each lane
// saw of it.
#pragma once

#include "backend/backend.hpp"
#include "model/schedule.hpp"

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace mgpu {

/// What a lane's thread did for a while.
struct LaneSpan {
  StepKind kind = StepKind::copy;
  Nanos start = 0, end = 0;
};

/// Host time that a lane spent in each kind of call in one pass, and when the stream did its work.
/// Nanoseconds on Backend::now().
struct LaneRecord {
  Nanos start = 0, end = 0;  ///< the lane's first reading, and the one after its synchronise
  Nanos wait = 0, prefetch = 0, launch = 0, sync = 0;
  Nanos device_start = 0, device_end = 0;  ///< of the copies, by marks; 0 without
  Nanos prefetch_start = 0;                ///< when the stream reached its first prefetch, likewise
  Nanos launched = 0;                      ///< when the last copy had been submitted
  std::vector<LaneSpan> spans;             ///< each step, with marks
};

struct PassResult {
  Nanos release = 0;  ///< when the lanes were let go
  Nanos wall = 0;     ///< from there to the last lane's end
};

/// One crew drives one schedule. Not movable: its threads hold on to it. All calls come from one
/// thread, the coordinator.
class Crew {
 public:
  /// Opens a worker for each lane and starts the threads. Keeps references to everything it is
  /// given.
  Crew(Backend& backend, const Case& what, const Schedule& schedule,
       std::span<const std::unique_ptr<Buffer>> buffers);
  /// Drains all workers before it closes any; never throws.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Gives each lane's advice, before anybody touches the memory. Blocking.
  void advise();

  /// Runs each lane's setup steps in order and synchronises. Blocking.
  void setup();

  /// Brings every slice back to its place, for `--cold`. Blocking.
  void cool();

  /// One pass of all lanes; `batch` executions of each back to back before its synchronise.
  /// Blocking. With `marks`, device times are recorded. Throws the error of the lane that failed
  /// first, after all lanes have ended.
  PassResult pass(bool marks);

  /// Of the last pass, by lane.
  std::span<const LaneRecord> records() const { return records_; }

  /// Where the lanes are: the first lane that has not ended the running pass and what it is doing.
  /// From any thread.
  std::string position() const;

 private:
  struct Owner {  // of one buffer: the worker that used it last
    std::atomic<Worker*> last{nullptr};
    std::mutex held;
  };
  struct Slot {  // of one lane
    std::unique_ptr<Worker> worker, previous;
    std::vector<std::unique_lock<std::mutex>> held;
    std::exception_ptr failure;
    int copy_mark = 0;   // the mark before the first copy; the next one is behind the last
    int failed_at = -1;  // the how-manieth failure of the pass it was
    std::atomic<const char*> doing{nullptr};
  };

  void work(std::size_t lane);  // a pool thread's loop
  void stop();
  void drive(std::size_t first, std::size_t last, Nanos release, bool marks);
  void submit(std::size_t lane, Nanos release, bool marks);
  void finish(std::size_t lane, bool marks);
  void own(std::size_t lane, const Step& step);
  void fail(std::size_t lane);
  Site here(std::size_t lane) const;
  Part part(const Range& range) const;
  PassResult pooled(bool marks);
  PassResult spawned(bool marks);
  bool fresh_streams() const { return what_.threads == Threads::task; }

  Backend& backend_;
  const Case& what_;
  const Schedule& schedule_;
  std::span<const std::unique_ptr<Buffer>> buffers_;
  std::vector<Owner> owners_;
  std::vector<Slot> slots_;
  std::vector<LaneRecord> records_;
  std::map<int, std::unique_ptr<Worker>> porters_;  // of cool(), by device
  std::atomic<int> failures_{0};

  std::atomic<unsigned> epoch_{0},
      gate_{0};  // the pass that is called for, and the one that is let go
  std::atomic<unsigned> ready_{0}, running_{0};
  std::atomic<Nanos> release_{0};
  bool marks_ = false;
  std::atomic<bool> quit_{false};
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace mgpu
