// SPDX-License-Identifier: MIT
// A device with its context: fills, checks, and keeps events so that none is made inside a sample.
#pragma once

#include "backend/backend.hpp"
#include "backend/cuda_call.hpp"
#include "backend/cuda_kernels.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mgpu {

// Destruction makes no device current: whoever holds one of these calls make_current before.
struct DestroyStream {
  void operator()(cudaStream_t stream) const noexcept { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const noexcept { cudaEventDestroy(event); }
};
struct FreeMemory {
  void operator()(void* memory) const noexcept { cudaFree(memory); }
};
using CudaStream = std::unique_ptr<CUstream_st, DestroyStream>;
using CudaEvent = std::unique_ptr<CUevent_st, DestroyEvent>;
using CudaMemory = std::unique_ptr<void, FreeMemory>;

/// A non-blocking stream of the device that is current.
CudaStream make_stream(int device);

/// Events of one device that nobody uses. Any thread.
class EventPool {
 public:
  EventPool(int device, unsigned flags, int count);  ///< of the device that is current
  CudaEvent take();  ///< makes one, with the device current, where none is left
  void give_back(CudaEvent event) noexcept;  ///< one that take() gave

 private:
  CudaEvent make() const;
  int device_;
  unsigned flags_;
  std::mutex mutex_;
  std::vector<CudaEvent> idle_;
};

class CudaDevice {
 public:
  /// Makes the context, loads every kernel; blocking.
  CudaDevice(int ordinal, Wait wait, std::vector<int> cpus);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  int ordinal() const { return ordinal_; }
  void bind() const { require(make_current(ordinal_), "cudaSetDevice", ordinal_); }
  /// While no worker of it does anything.
  void set_wait(Wait wait);
  void set_cpus(std::vector<int> cpus) { cpus_ = std::move(cpus); }

  /// Those that the threads which drive it are bound to; none: unbound.
  std::span<const int> cpus() const { return cpus_; }
  bool knows_host_nodes() const { return knows_host_nodes_; }  ///< the driver: NUMA nodes

  /// As Backend's; from any thread, one at a time.
  void fill(void* data, Bytes bytes, Pattern pattern, Bytes base);
  Check check(const void* data, Bytes bytes, Pattern pattern, Bytes base);
  double chase(void* chain, Bytes bytes, int hops);
  Bytes free_memory() const;

  /// A moment that both the clock of now() and this device's events know.
  struct Anchor {
    CudaEvent event;
    Nanos at = 0;
  };
  Anchor& anchor() { return anchor_; }  ///< written by one thread while no sample runs

  EventPool& timing_events() { return *timing_events_; }
  EventPool& order_events() {
    return *order_events_;
  }  ///< without times: they cost the stream less

 private:
  void load_kernels();
  void sync(std::string_view after) const;

  int ordinal_;
  std::optional<Wait> wait_;
  std::vector<int> cpus_;
  bool knows_host_nodes_ = false;
  std::mutex mutex_;  // of the stream and the counts
  CudaStream stream_;
  CudaMemory counts_;
  std::unique_ptr<EventPool> timing_events_, order_events_;
  Anchor anchor_;
};

}  // namespace mgpu
