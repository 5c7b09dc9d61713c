// SPDX-License-Identifier: MIT
// Makes any backend fail as told. Adds no behaviour where no fault is due.
#pragma once

#include "backend/backend.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

/// What goes wrong, and when: at the `nth` call of its class on `device` (any device where none is
/// named), and at the `times - 1` ones after it.
struct Fault {
  // clang-format off
  enum class Call {
    machine, open, connect, free_memory, allocate, open_worker, fill, check,
    begin, advise, prefetch, copy, mark, wait_for, sync, anchor, at, chase
  };
  // clang-format on
  enum class Act {
    fail,  ///< throws Error{kind}
    skip,  ///< does nothing and says nothing (connect, fill, advise, prefetch, copy, wait_for)
    flip,  ///< a copy whose byte at `offset` of the destination then has its lowest bit inverted
    zero,  ///< a copy whose destination then holds zeros
    hang,  ///< blocks until FaultyBackend::release(), then goes on
  };

  Call call = Call::copy;
  Act act = Act::fail;
  int nth = 1;  ///< from 1
  int times = 1;
  std::optional<int> device;
  Bytes offset = 0;
  ErrorKind kind = ErrorKind::runtime;
  bool lost = false;  ///< the error says so, and all later calls but the clocks throw it again
};

/// Owns the backend it wraps. As thread safe as that one is. Throws std::logic_error for a fault
/// that cannot be.
class FaultyBackend final : public Backend {
 public:
  /// `edit` changes what machine() tells, to hide a capability.
  FaultyBackend(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults,
                std::function<void(Machine&)> edit = {});

  Machine machine() override;
  void open(std::span<const int> devices, Wait wait, Affinity affinity) override;
  void connect(int device, int peer) override;
  Bytes free_memory(Site site) override;
  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override;
  std::unique_ptr<Worker> open_worker(int device) override;
  void fill(Site by, Part part, Pattern pattern, Bytes base) override;
  Check check(Site by, Part part, Pattern pattern, Bytes base) override;
  double chase(Site by, Part chain, int hops) override;
  Nanos now() override { return inner_->now(); }
  bool threaded() const override { return inner_->threaded(); }
  std::optional<Nanos> run_queue_delay() override { return inner_->run_queue_delay(); }
  void disconnect(int device, int peer) override { inner_->disconnect(device, peer); }
  void prepare_counting() override { inner_->prepare_counting(); }
  Counted counted(const std::function<void()>& work) override { return inner_->counted(work); }
  std::optional<Telemetry> telemetry(int device) override { return inner_->telemetry(device); }
  std::vector<MemoryHolder> memory_holders(int device) override {
    return inner_->memory_holders(device);
  }
  bool marks_are_free() const override { return inner_->marks_are_free(); }

  int fired() const { return fired_; }           ///< faults that happened so far
  void wait_until_hung() { hung_.wait(false); }  ///< blocking, until a hang has begun
  void release();  ///< ends all hangs, those to come too; from any thread

 private:
  class FaultyWorker;
  struct Armed {
    Fault fault;
    int seen = 0;
  };

  std::optional<Fault> strike(Fault::Call call, std::optional<int> device);
  void flip(int device, Part byte);
  void zero(int device, Worker& worker, Part part);

  std::unique_ptr<Backend> inner_;
  std::function<void(Machine&)> edit_;
  std::mutex mutex_;  // of the two below
  std::vector<Armed> armed_;
  std::optional<Error> lost_;
  std::atomic<int> fired_ = 0;
  std::atomic<bool> hung_ = false, released_ = false;
};

}  // namespace mgpu
