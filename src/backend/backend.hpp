// SPDX-License-Identifier: MIT
// The one seam of the program: what a machine that copies must be able to do. Policies are not here
// (see model/schedule). All calls throw Error. "Blocking" returns when the work is done;
// "stream-ordered" returns once it is queued.
#pragma once

#include "model/error.hpp"
#include "model/evidence.hpp"
#include "model/machine.hpp"
#include "model/pattern.hpp"
#include "model/schedule.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// An allocation; freed by the destructor, which never throws. At least 2 MiB aligned where it is
/// that large, else 256 bytes.
class Buffer {
 public:
  virtual ~Buffer() = default;
};

/// A part of a buffer.
struct Part {
  Buffer* buffer = nullptr;
  Bytes offset = 0, bytes = 0;
};

/// What a check found.
struct Check {
  Bytes bad = 0;    ///< bytes that differ from the pattern
  Bytes first = 0;  ///< offset in the part of the first one, where bad > 0
  std::array<unsigned char, 8>
      got{};  ///< the bytes from there on (fewer at the part's end: the rest is 0)
};

/// One stream on one device. Used by one thread at a time, but for `wait_for`'s other. Destructors
/// never throw and may block. Drain (sync) all workers of a case before any is destroyed.
class Worker {
 public:
  virtual ~Worker() = default;
  /// A sample starts in the calling thread: binds it to the device and, with Affinity::near and
  /// unless it is the process' first, to the CPUs near it; forgets the marks; now.
  virtual Nanos begin(Nanos release) = 0;
  virtual Nanos now() = 0;  ///< the calling thread's clock, the same epoch as Backend::now
  virtual void advise(Part part, Advice advice, Site home) = 0;  ///< blocking; before first touch
  virtual void prefetch(Part part, Site to) = 0;                 ///< stream-ordered
  virtual void copy(Part destination, Part source, Engine engine,
                    int access) = 0;  ///< stream-ordered
  virtual int mark() = 0;             ///< stream-ordered; the mark's number since begin, from 0
  virtual void wait_for(
      Worker& other,
      OwnerWait how) = 0;   ///< for all that `other` was given until now; host: blocking
  virtual void sync() = 0;  ///< blocking; throws what the stream met

  /// Places the marks that any worker of this device makes from now on on the clock of now(), by a
  /// mark of its own; blocking, outside the clock.
  virtual void anchor() = 0;
  /// When the stream reached a mark since begin, after sync, on the clock of now(): exact between
  /// own marks, a few microseconds between workers. Needs an anchor made not long before (CUDA's
  /// event times are single precision).
  virtual Nanos at(int mark) = 0;

  /// Names what the calling thread does, for tools that listen; ranges nest.
  virtual void push_range(const char* name) { (void)name; }
  virtual void pop_range() {}
};

/// A process that holds memory of a device.
struct MemoryHolder {
  unsigned pid = 0;
  std::optional<Bytes> bytes;  ///< where that is told
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// What there is, without making a context. Throws Error{no_gpu} where there is nothing to run
  /// on.
  virtual Machine machine() = 0;

  /// Makes contexts on these ordinals and no other, loads all kernels there. Before anything below;
  /// blocking; idempotent. With Affinity::near threads and host memory keep to the CPUs and nodes
  /// near their device or of their site, as far as the process may use them.
  virtual void open(std::span<const int> devices, Wait wait, Affinity affinity) = 0;

  /// Lets `device` access the memory of `peer`. Before allocation. Error{unavailable} where it
  /// cannot be had.
  virtual void connect(int device, int peer) = 0;

  /// Takes that back; what does not fit the state is ignored.
  virtual void disconnect(int device, int peer) { (void)device, (void)peer; }

  /// Bytes that can be had now at a site (also whole_host); on the host: what is free on the node,
  /// cut by MemAvailable and the cgroup's limit less use.
  virtual Bytes free_memory(Site site) = 0;

  /// Pinned and pageable memory is of the host, resident on its node when this returns. Blocking.
  /// Error{memory} where there is no room.
  virtual std::unique_ptr<Buffer> allocate(const BufferSpec& spec) = 0;
  virtual std::unique_ptr<Worker> open_worker(int device) = 0;  ///< from any thread; cheap

  /// Executed by the device or the CPUs of `by`, which thereby touch the memory; blocking. `base`
  /// is the array offset of the part's first byte.
  virtual void fill(Site by, Part part, Pattern pattern, Bytes base) = 0;
  virtual Check check(Site by, Part part, Pattern pattern, Bytes base) = 0;

  /// What one of `hops` dependent loads takes, in ns: one thread of `by` follows a chain through
  /// the part, which is laid out here first so that each of its lines is met before any is met
  /// again and none is guessed beforehand. Blocking. The part holds 4 KiB or more.
  virtual double chase(Site by, Part chain, int hops) = 0;

  virtual Nanos now() = 0;  ///< monotonic, of the coordinating thread

  /// Before any managed memory is allocated whose migrations counted() is to count; blocking.
  virtual void prepare_counting() {}

  /// Does `work` once, and counts what managed memory did meanwhile; or says why it could not.
  virtual Counted counted(const std::function<void()>& work) {
    work();
    return "this backend has no counters";
  }

  /// The state of a device now, where it is known. Blocking, up to milliseconds.
  virtual std::optional<Telemetry> telemetry(int device) {
    (void)device;
    return std::nullopt;
  }

  /// Who holds memory of an open device beside this process, as far as it is known; the largest
  /// first. Blocking, up to milliseconds. Throws nothing.
  virtual std::vector<MemoryHolder> memory_holders(int device) {
    (void)device;
    return {};
  }

  /// False where the calling thread drives all lanes in order (a logical clock).
  virtual bool threaded() const { return true; }

  /// Whether marks cost nothing, so that every sample may have them and no second set is needed.
  virtual bool marks_are_free() const { return false; }

  /// Time that this process' threads have waited for a CPU so far, where it is known and matters.
  virtual std::optional<Nanos> run_queue_delay() { return std::nullopt; }
};

/// The clock of every real backend, and of whoever must share it: steady, from any thread.
inline Nanos steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// One row for each backend that is built in. `available` is false in a build without it; `make`
/// then throws Error{no_gpu}.
struct BackendRow {
  BackendKind kind;
  bool available;
  std::function<std::unique_ptr<Backend>(std::optional<int> host_devices)> make;
};
std::span<const BackendRow> builtin_backends();

std::unique_ptr<Backend> make_cuda_backend();  ///< defined where MGPU_HAS_CUDA
std::unique_ptr<Backend> make_host_backend(std::optional<int> devices);

}  // namespace mgpu
