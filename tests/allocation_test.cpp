// SPDX-License-Identifier: MIT
// Its own executable: it replaces the global operator new and delete.
#include "crew.hpp"
#include "sim.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> counting{false};
std::atomic<int> counted{0};       // allocations and releases, of any thread
thread_local bool exempt = false;  // the calling thread is inside a backend that may allocate

void note() {
  if (counting && !exempt) ++counted;
}

void* taken(void* memory) {
  note();
  if (!memory) throw std::bad_alloc();
  return memory;
}

void given(void* memory) {
  if (memory) note();
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return taken(std::malloc(bytes > 0 ? bytes : 1));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return taken(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept {
  given(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  given(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  given(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  given(memory);
}

namespace mgpu {
namespace {

/// What the workers of one crew share.
struct Window {
  bool inner_counts = true;   ///< the wrapped worker's own allocations count
  std::atomic<int> lanes{0};  ///< that have not ended a pass whose allocations are counted
};

/// Ends the counting with the last lane's synchronise, and changes nothing.
class Watched final : public Worker {
  template <class F>
  auto inside(F&& call) {
    struct Exempt {
      explicit Exempt(bool on) { exempt = on; }
      ~Exempt() { exempt = false; }
    } const guard(!window_.inner_counts);
    return call();
  }

 public:
  Watched(std::unique_ptr<Worker> inner, Window& window)
      : inner_(std::move(inner)), window_(window) {}

  Nanos begin(Nanos release) override {
    return inside([&] { return inner_->begin(release); });
  }
  void sync() override {
    inside([&] { inner_->sync(); });
    if (window_.lanes.fetch_sub(1) == 1) counting = false;
  }
  Nanos now() override { return inner_->now(); }
  void advise(Part part, Advice advice, Site home) override { inner_->advise(part, advice, home); }
  void prefetch(Part part, Site to) override {
    inside([&] { inner_->prefetch(part, to); });
  }
  void copy(Part destination, Part source, Engine engine, int access) override {
    inside([&] { inner_->copy(destination, source, engine, access); });
  }
  int mark() override {
    return inside([&] { return inner_->mark(); });
  }
  void wait_for(Worker& other, OwnerWait how) override {
    inside([&] { inner_->wait_for(*static_cast<Watched&>(other).inner_, how); });
  }
  void anchor() override { inner_->anchor(); }
  Nanos at(int mark) override { return inner_->at(mark); }

 private:
  const std::unique_ptr<Worker> inner_;
  Window& window_;
};

/// The backend given, but for its workers; counts from the release.
class WatchedBackend final : public Backend {
 public:
  WatchedBackend(Backend& inner, Window& window) : inner_(inner), window_(window) {}
  std::unique_ptr<Worker> open_worker(int device) override {
    return std::make_unique<Watched>(inner_.open_worker(device), window_);
  }
  Machine machine() override { return inner_.machine(); }
  void open(std::span<const int> devices, Wait wait, Affinity affinity) override {
    inner_.open(devices, wait, affinity);
  }
  void connect(int device, int peer) override { inner_.connect(device, peer); }
  Bytes free_memory(Site site) override { return inner_.free_memory(site); }
  std::unique_ptr<Buffer> allocate(const BufferSpec& spec) override {
    return inner_.allocate(spec);
  }
  void fill(Site by, Part part, Pattern pattern, Bytes base) override {
    inner_.fill(by, part, pattern, base);
  }
  Check check(Site by, Part part, Pattern pattern, Bytes base) override {
    return inner_.check(by, part, pattern, base);
  }
  double chase(Site by, Part chain, int hops) override { return inner_.chase(by, chain, hops); }
  /// The crew reads this clock to let the lanes go.
  Nanos now() override {
    if (window_.lanes > 0) counting = true;
    return inner_.now();
  }
  bool threaded() const override { return inner_.threaded(); }

 private:
  Backend& inner_;
  Window& window_;
};

/// A thread that has just been started allocates on its way to sleep.
void wait_for_sleeping_threads() {
  namespace fs = std::filesystem;
  const auto asleep = [](const fs::path& task) {
    std::ifstream file(task / "stat");
    std::string text;
    std::getline(file, text);
    const auto state = text.rfind(") ");
    return state == std::string::npos || text.at(state + 2) == 'S';
  };
  for (bool all = false; !all; std::this_thread::yield()) {
    int awake = 0;
    for (const auto& task : fs::directory_iterator("/proc/self/task"))
      if (!asleep(task.path())) ++awake;
    all = awake <= 1;  // this one reads
  }
}

/// Allocations and releases inside the timed parts of some passes, of four slices on all devices.
int allocations(Backend& backend, Case what, bool inner_counts, bool marks) {
  for (const Device& device : backend.machine().devices) what.gpus.push_back(device.ordinal);
  what.split = 4;
  backend.open(what.gpus, what.wait, what.affinity);
  const Schedule schedule = make_schedule(what);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const BufferSpec& spec : schedule.buffers) buffers.push_back(backend.allocate(spec));
  Window window{inner_counts, 0};
  WatchedBackend watched(backend, window);
  Crew crew(watched, what, schedule, buffers);
  crew.pass(marks);  // the first one makes room
  wait_for_sleeping_threads();
  counted = 0;
  for (int i = 0; i < 10; ++i) {
    window.lanes = static_cast<int>(schedule.lanes.size());
    crew.pass(marks);
    REQUIRE(window.lanes == 0);
  }
  return counted;
}

Case case_of(Threads threads, Bytes size) {
  Case what;
  what.threads = threads;
  what.size = size;
  return what;
}

/// The seed's policy: one array for all slices, prefetches, an owner wait under a lock.
Case seed_case(Threads threads, Bytes size) {
  Case what = case_of(threads, size);
  what.memory = what.source_memory = what.destination_memory = MemoryKind::managed;
  what.from = what.to = {Place::Kind::device, 0};
  what.prefetch = Prefetch::array;
  what.prefetch_repeats = 2;
  what.owner_wait = OwnerWait::host;
  what.batch = 3;
  return what;
}

TEST_CASE("a sample on simulated devices allocates nothing of its own", "[allocation]") {
  const bool marks = GENERATE(false, true);
  SimBackend plain, managed;
  CHECK(allocations(plain, case_of(Threads::pool, 4 << 10), false, marks) == 0);
  CHECK(allocations(managed, seed_case(Threads::pool, 4 << 10), false, marks) == 0);
}

TEST_CASE("an allocation inside a sample is noticed", "[allocation]") {
  SimBackend backend;  // which allocates in every call
  CHECK(allocations(backend, case_of(Threads::pool, 4 << 10), true, false) > 0);
}

TEST_CASE("a sample on CPUs allocates nothing, its streams' threads included", "[allocation]") {
  const Threads threads = GENERATE(Threads::pool, Threads::single);
  const bool marks = GENERATE(false, true);
  // One device of several CPUs shares slices of 1 MiB and more among them.
  const int devices = GENERATE(1, 2);
  const Bytes size = GENERATE(Bytes{8} << 10, Bytes{16} << 20);
  CAPTURE(name(threads), marks, devices, size);
  const auto backend = make_host_backend(devices);
  CHECK(allocations(*backend, case_of(threads, size), true, marks) == 0);
  CHECK(allocations(*backend, seed_case(threads, size), true, marks) == 0);
}

}  // namespace
}  // namespace mgpu
