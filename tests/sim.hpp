// SPDX-License-Identifier: MIT
// GPUs that are not there: real bytes, and a logical clock of whole nanoseconds. Knows no policy
// and no real time.
#pragma once

#include "backend/backend.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mgpu {

/// Rates are whole bytes copied per microsecond, times nanoseconds; a table is used by pass in
/// turn, and a pass begins with a release that was not seen before.
struct SimOptions {
  int gpus = 2;  ///< 0: machine() throws Error{no_gpu}
  Bytes gpu_memory = 141'000'000'000, host_memory = 256'000'000'000;
  bool peers = true;                     ///< every device can be connected to every other
  std::vector<bool> managed;             ///< by ordinal; empty: all
  std::vector<bool> concurrent_managed;  ///< by ordinal; empty: all
  bool data = true;         ///< false: no bytes are kept and every check finds them good
  Bytes local = 2'000'000;  ///< inside a device's memory
  Bytes link = 400'000;     ///< each way between each pair of devices
  Bytes pcie = 50'000;      ///< each way between each device and the host
  Bytes host = 10'000;      ///< inside the host's memory, by its CPUs
  int nodes = 1;            ///< NUMA nodes, which devices are near in turn
  bool pageable_access = false;
  int staging = 300;  ///< per cent: how long memcpy takes with pageable memory, against pinned
  Nanos launch = 4'000, sync = 3'000, prefetch_call = 500, advise_call = 1'000, event_call = 500;
  Nanos local_latency = 300, link_latency = 800, pcie_latency = 1'200;  ///< of one load
  Nanos allocate_call = 100'000, open_worker_call = 20'000;
  Nanos move = 20'000;                      ///< of the stream: a 2 MiB block that a prefetch brings
  Nanos fault = 60'000;                     ///< of the stream: a 2 MiB block that an access brings
  std::vector<Nanos> wake = {2'000};        ///< from the release to a lane's first call
  std::vector<int> scale = {100};           ///< per cent: how long stream work takes
  std::vector<std::string>* log = nullptr;  ///< gets a line a call; outlives backend and buffers
};

/// What all calls so far have moved.
struct SimCounters {
  Bytes migrated = 0;             ///< bytes of managed blocks that went from one device to another
  std::int64_t fault_groups = 0;  ///< blocks that an access brought
  std::int64_t prefetched = 0;    ///< blocks that a prefetch brought
  int undrained = 0;              ///< workers destroyed with work that nobody had waited for
};

/// For one thread, which drives all lanes. Breaking the contract of backend.hpp (a device not
/// opened, a part outside its buffer, a mark read before sync) throws std::logic_error, so that
/// tests notice what a GPU would forgive.
class SimBackend : public Backend {
 public:
  explicit SimBackend(SimOptions options = {});

  Machine machine() override;
  void open(std::span<const int> devices, Wait wait, Affinity affinity) override;
  void connect(int device, int peer) override;
  Bytes free_memory(Site site) override;
  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override;
  std::unique_ptr<Worker> open_worker(int device) override;
  void fill(Site by, Part part, Pattern pattern, Bytes base) override;
  Check check(Site by, Part part, Pattern pattern, Bytes base) override;
  double chase(Site by, Part chain, int hops) override;
  Nanos now() override;
  bool threaded() const override { return false; }

  const SimCounters& counters() const { return counters_; }
  const std::set<int>& opened() const { return opened_; }  ///< devices with a context

 private:
  class SimBuffer;
  class SimWorker;
  // Where bytes come from and go to, the host being host_end; a memory is a path to itself.
  using Path = std::pair<int, int>;
  using Traffic = std::map<Path, Bytes>;

  template <class... T>
  void note(const char* format, const T&... values);
  void require_open(int device) const;
  bool concurrent(int device) const;
  SimBuffer& own(Part part) const;
  std::string show(Part part) const;
  void require_reach(int end, Part part) const;
  Nanos migrate(int end, Part part, Nanos start, Nanos each, std::int64_t& counter);
  Nanos access(int device, Part part, Nanos start);
  Traffic traffic(int end, Part destination, Part source, Engine engine) const;
  Nanos occupy(Nanos start, const Traffic& traffic, int percent);
  void sweep(Site by, Part part);

  SimOptions options_;
  SimCounters counters_;
  std::set<int> opened_, anchored_;
  std::set<Path> connected_;
  std::map<int, Bytes> used_;
  std::map<Path, Nanos> busy_;  // until when
  Nanos coordinator_ = 0;
  Nanos latest_ = 0;  // of all workers' threads
  std::optional<Nanos> release_;
  std::size_t pass_ = 0;
  int buffers_ = 0, live_buffers_ = 0, workers_ = 0;
};

}  // namespace mgpu
