// SPDX-License-Identifier: MIT
#include "sim.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace mgpu {
namespace {

constexpr Bytes block_bytes = Bytes{2} << 20;
constexpr int nowhere = -2;
constexpr std::pair<int, int> migration_path = {-3, -3};

int end_of(const Site& site) {
  return site.on_host() ? host_end : site.index;
}

Link made_link(int from, int to, LinkKind kind, double rate) {
  Link link;
  link.from = from;
  link.to = to;
  link.kind = kind;
  link.now = link.best = rate;
  link.claimed = {true, true, true, ""};
  return link;
}

std::string text_of(const Site& site) {
  return site.kind == Site::Kind::device ? std::to_string(site.index)
         : site == whole_host            ? "the host"
                                         : to_string(site);
}

// A vector<bool> by ordinal that may be empty: then every device has it.
bool has(const std::vector<bool>& which, int device) {
  return which.empty() || which.at(static_cast<std::size_t>(device));
}

Nanos duration(Bytes bytes, Bytes rate, int percent) {
  return static_cast<Nanos>((bytes * 1000 + rate - 1) / rate) * percent / 100;
}

// A word at a time: contract tests fill gigabytes. Little-endian machines alone.
void write_pattern(unsigned char* bytes, Bytes count, Pattern pattern, Bytes base) {
  for (Bytes i = 0; i < count;) {
    const Bytes inside = (base + i) % 8, step = std::min(count - i, 8 - inside);
    const std::uint64_t word = pattern_word(pattern, (base + i) / 8) >> (inside * 8);
    std::memcpy(bytes + i, &word, step);
    i += step;
  }
}

}  // namespace

class SimBackend::SimBuffer final : public Buffer {
 public:
  SimBuffer(SimBackend& backend, const BufferSpec& what, int which)
      : spec(what), number(which), backend_(backend) {
    ++backend_.live_buffers_;
    if (spec.kind == MemoryKind::managed)
      homes.assign((spec.bytes + block_bytes - 1) / block_bytes, nowhere);
    else
      backend_.used_[end_of(spec.site)] += spec.bytes;
  }
  ~SimBuffer() override {
    backend_.note("free buffer {}", number);
    --backend_.live_buffers_;
    if (spec.kind != MemoryKind::managed) backend_.used_[end_of(spec.site)] -= spec.bytes;
  }

  // Where the byte lives, and how many bytes from there on surely live there too.
  std::pair<int, Bytes> extent(Bytes offset) const {
    if (spec.kind != MemoryKind::managed) return {end_of(spec.site), spec.bytes - offset};
    const int home = homes[offset / block_bytes];
    return {home == nowhere ? end_of(spec.site) : home, block_bytes - offset % block_bytes};
  }

  // Memory is taken at first use, so that large arrays that no test touches cost nothing.
  unsigned char* data(Bytes offset) {
    if (data_.empty()) data_.resize(spec.bytes);
    return data_.data() + offset;
  }

  const BufferSpec spec;
  const int number;
  std::vector<int> homes;  // managed: by block

 private:
  SimBackend& backend_;
  std::vector<unsigned char> data_;
};

class SimBackend::SimWorker final : public Worker {
 public:
  SimWorker(SimBackend& backend, int device, int number)
      : backend_(backend), device_(device), number_(number), host_(backend.coordinator_) {}
  ~SimWorker() override {
    backend_.note("close worker {}", number_);
    if (!drained_) ++backend_.counters_.undrained;
  }

  Nanos begin(Nanos release) override {
    backend_.note("begin worker {}", number_);
    // All lanes of a pass have one release, whichever worker comes first and however new it is.
    if (backend_.release_ != release) {
      if (backend_.release_) ++backend_.pass_;
      backend_.release_ = release;
    }
    marks_.clear();
    const std::vector<Nanos>& wake = backend_.options_.wake;
    const Nanos start = std::max(release, opened_) + wake[backend_.pass_ % wake.size()];
    spend(std::max<Nanos>(0, start - host_));
    return host_;
  }

  Nanos now() override { return host_; }

  void advise(Part part, Advice advice, Site home) override {
    backend_.note("advise {} {} for {} by worker {}", backend_.show(part), name(advice),
                  text_of(home), number_);
    require_concurrent("advice");
    spend(backend_.options_.advise_call);
  }

  void prefetch(Part part, Site to) override {
    backend_.note("prefetch {} to {} by worker {}", backend_.show(part), text_of(to), number_);
    require_concurrent("prefetch");
    if (backend_.own(part).spec.kind != MemoryKind::managed)
      throw std::logic_error("prefetch of memory that is not managed");
    spend(backend_.options_.prefetch_call);
    queue(backend_.migrate(end_of(to), part, ready(), scaled(backend_.options_.move),
                           backend_.counters_.prefetched));
  }

  void copy(Part destination, Part source, Engine engine, int access) override {
    backend_.note("copy {} <- {} by worker {} {} {}", backend_.show(destination),
                  backend_.show(source), number_, name(engine), access);
    if (destination.bytes != source.bytes) throw std::logic_error("copy of parts of unequal size");
    SimBuffer& to = backend_.own(destination);
    SimBuffer& from = backend_.own(source);
    spend(backend_.options_.launch);
    Nanos start = ready();
    // The copy engine runs where managed pages are and moves none.
    if (engine == Engine::kernel) {
      for (const Part& part : {source, destination}) {
        backend_.require_reach(device_, part);
        start = backend_.migrate(device_, part, start, scaled(backend_.options_.fault),
                                 backend_.counters_.fault_groups);
      }
    }
    const bool staged = engine == Engine::memcpy && (to.spec.kind == MemoryKind::pageable ||
                                                     from.spec.kind == MemoryKind::pageable);
    queue(backend_.occupy(start, backend_.traffic(device_, destination, source, engine),
                          staged ? scale() * backend_.options_.staging / 100 : scale()));
    if (backend_.options_.data && source.bytes > 0)
      std::memmove(to.data(destination.offset), from.data(source.offset), source.bytes);
  }

  int mark() override {
    backend_.note("mark worker {}", number_);
    spend(backend_.options_.event_call);
    queue(ready());
    marks_.push_back(stream_);
    return static_cast<int>(marks_.size()) - 1;
  }

  void wait_for(Worker& other, OwnerWait how) override {
    auto& that = static_cast<SimWorker&>(other);
    backend_.note("wait {} by worker {} for worker {}", name(how), number_, that.number_);
    switch (how) {
      case OwnerWait::none:
        break;
      case OwnerWait::host:
        spend(std::max<Nanos>(0, that.stream_ - host_) + backend_.options_.sync);
        break;
      case OwnerWait::event:
        spend(backend_.options_.event_call);
        queue(std::max(ready(), that.stream_));
        break;
    }
  }

  void sync() override {
    backend_.note("sync worker {}", number_);
    spend(std::max<Nanos>(0, stream_ - host_) + backend_.options_.sync);
    drained_ = true;
  }

  void anchor() override {
    backend_.note("anchor worker {}", number_);
    spend(std::max<Nanos>(0, backend_.coordinator_ - host_) + backend_.options_.event_call +
          backend_.options_.sync);
    backend_.anchored_.insert(device_);
  }

  Nanos at(int mark) override {
    if (!backend_.anchored_.contains(device_))
      throw std::logic_error("a mark's time without an anchor");
    if (!drained_) throw std::logic_error("a mark's time before sync");
    return marks_.at(static_cast<std::size_t>(mark));
  }

 private:
  void spend(Nanos time) {
    host_ += time;
    backend_.latest_ = std::max(backend_.latest_, host_);
  }
  Nanos ready() const { return std::max(host_, stream_); }
  void queue(Nanos end) {
    stream_ = end;
    drained_ = false;
  }
  int scale() const {
    return backend_.options_.scale[backend_.pass_ % backend_.options_.scale.size()];
  }
  Nanos scaled(Nanos time) const { return time * scale() / 100; }
  void require_concurrent(const char* what) const {
    if (!backend_.concurrent(device_))
      throw Error(ErrorKind::unavailable,
                  fmt::format("invalid device ordinal (101) on GPU {}: no {} without concurrent "
                              "managed access; use --prefetch none",
                              device_, what),
                  device_);
  }

  SimBackend& backend_;
  const int device_, number_;
  Nanos host_;  // the driving thread
  const Nanos opened_ = host_;
  Nanos stream_ = 0;  // idle from here on
  bool drained_ = true;
  std::vector<Nanos> marks_;
};

template <class... T>
void SimBackend::note(const char* format, const T&... values) {
  if (options_.log != nullptr)
    options_.log->push_back(fmt::vformat(format, fmt::make_format_args(values...)));
}

SimBackend::SimBackend(SimOptions options) : options_(std::move(options)) {}

Machine SimBackend::machine() {
  note("machine");
  if (options_.gpus == 0)
    throw Error(ErrorKind::no_gpu, "no simulated GPU is visible; --backend host uses the CPUs");
  Machine machine;
  machine.host.name = machine.host.kernel = "sim";
  machine.host.cpus = 8;
  machine.host.allowed_cpus.resize(8);
  std::iota(machine.host.allowed_cpus.begin(), machine.host.allowed_cpus.end(), 0);
  machine.host.memory_bytes = options_.host_memory;
  const int cpus = machine.host.cpus / options_.nodes;
  for (int node = 0; node < options_.nodes; ++node) {
    const auto first = machine.host.allowed_cpus.begin() + node * cpus;
    machine.host.nodes.push_back(
        {node, {first, first + cpus}, options_.host_memory / static_cast<Bytes>(options_.nodes)});
  }
  machine.driver = {"580.00", "13.0", "13.0", "available"};
  for (int k = 0; k < options_.gpus; ++k) {
    Device device;
    device.ordinal = k;
    device.name = "Simulated GPU";
    device.uuid = fmt::format("GPU-{:08x}-0000-0000-0000-000000000000", k);
    device.pci = fmt::format("00000000:{:02x}:00.0", k + 1);
    device.memory_bytes = options_.gpu_memory;
    device.l2_bytes = 60'000'000;
    device.memory_peak = 4.8e12;
    device.numa = k % options_.nodes;
    device.cpus = machine.host.nodes[static_cast<std::size_t>(k % options_.nodes)].cpus;
    device.pageable_access = options_.pageable_access;
    device.nvlinks = {18, 18, 25e9, true};
    device.managed = has(options_.managed, k);
    device.concurrent_managed = concurrent(k);
    for (int j = 0; j < options_.gpus; ++j) device.peers.push_back(options_.peers && j != k);
    machine.devices.push_back(std::move(device));
    for (int j = 0; j < options_.gpus; ++j)
      if (j != k) machine.links.push_back(made_link(k, j, LinkKind::nvlink, 450e9));
    machine.links.push_back(made_link(k, host_end, LinkKind::pcie, 64e9));
    machine.links.push_back(made_link(host_end, k, LinkKind::pcie, 64e9));
  }
  return machine;
}

void SimBackend::open(std::span<const int> devices, Wait, Affinity affinity) {
  note("open {}{}", fmt::format("{}", fmt::join(devices, ",")),
       affinity == Affinity::none ? std::string(" unpinned") : std::string());
  for (int device : devices)
    if (device < 0 || device >= options_.gpus)
      throw Error(ErrorKind::unavailable, fmt::format("there is no simulated GPU {}", device),
                  device);
  opened_.insert(devices.begin(), devices.end());
}

void SimBackend::connect(int device, int peer) {
  note("connect {}->{}", device, peer);
  require_open(device);
  require_open(peer);
  if (live_buffers_ > 0) throw std::logic_error("connect after allocation");
  if (!options_.peers || device == peer)
    throw Error(ErrorKind::unavailable,
                fmt::format("GPU {} cannot access the memory of GPU {} (217)", device, peer),
                device);
  connected_.insert({device, peer});
}

Bytes SimBackend::free_memory(Site site) {
  note("free memory of {}", text_of(site));
  const bool host = site.on_host();
  if (!host) require_open(site.index);
  return (host ? options_.host_memory : options_.gpu_memory) - used_[end_of(site)];
}

std::unique_ptr<Buffer> SimBackend::allocate(const BufferSpec& spec) {
  note("allocate {} {} on {}", name(spec.kind), spec.bytes, text_of(spec.site));
  if (spec.site.on_host()) {
    if (spec.kind == MemoryKind::device) throw std::logic_error("device memory on the host");
    if (spec.bytes > options_.host_memory - used_[host_end])
      throw Error(ErrorKind::memory,
                  fmt::format("out of memory on the host: need {} bytes; use a smaller --size",
                              spec.bytes));
    coordinator_ = now() + options_.allocate_call;
    return std::make_unique<SimBuffer>(*this, spec, buffers_++);
  }
  const int on = spec.site.index;
  require_open(on);
  const bool is_managed = spec.kind == MemoryKind::managed;
  if (is_managed && !has(options_.managed, on))
    throw Error(ErrorKind::unavailable,
                fmt::format("operation not supported (801): no managed memory on GPU {}; use "
                            "--memory device",
                            on),
                on);
  const Bytes have = options_.gpu_memory - used_[on] + (is_managed ? options_.host_memory : 0);
  if (spec.bytes > have)
    throw Error(
        ErrorKind::memory,
        fmt::format("out of memory (2) on GPU {}: need {} bytes, have {}; use a smaller --size", on,
                    spec.bytes, have),
        on);
  coordinator_ = now() + options_.allocate_call;
  return std::make_unique<SimBuffer>(*this, spec, buffers_++);
}

std::unique_ptr<Worker> SimBackend::open_worker(int device) {
  note("open worker {} on {}", workers_, device);
  require_open(device);
  // Not from now(): a lane that opens its stream inside a sample does not wait for what another
  // lane does meanwhile.
  coordinator_ += options_.open_worker_call;
  return std::make_unique<SimWorker>(*this, device, workers_++);
}

void SimBackend::fill(Site by, Part part, Pattern pattern, Bytes base) {
  SimBuffer& buffer = own(part);
  note("fill {} by {} key {}{} base {}", show(part), text_of(by), pattern.key,
       pattern.inverted ? " inverted" : "", base);
  sweep(by, part);
  if (!options_.data) return;
  write_pattern(buffer.data(part.offset), part.bytes, pattern, base);
}

Check SimBackend::check(Site by, Part part, Pattern pattern, Bytes base) {
  SimBuffer& buffer = own(part);
  note("check {} by {} key {}{} base {}", show(part), text_of(by), pattern.key,
       pattern.inverted ? " inverted" : "", base);
  sweep(by, part);
  Check found;
  if (!options_.data) return found;
  std::vector<unsigned char> expected(part.bytes);
  write_pattern(expected.data(), part.bytes, pattern, base);
  const unsigned char* bytes = buffer.data(part.offset);
  if (part.bytes == 0 || std::memcmp(bytes, expected.data(), part.bytes) == 0) return found;
  found.first = static_cast<Bytes>(
      std::ranges::mismatch(std::span(bytes, part.bytes), expected).in2 - expected.begin());
  found.bad = std::transform_reduce(expected.begin(), expected.end(), bytes, Bytes{0},
                                    std::plus<>(), std::not_equal_to<>());
  std::copy_n(bytes + found.first, std::min<Bytes>(8, part.bytes - found.first), found.got.begin());
  return found;
}

double SimBackend::chase(Site by, Part chain, int hops) {
  note("chase {} by {}, {} hops", show(chain), text_of(by), hops);
  const int end = end_of(by), holder = own(chain).extent(chain.offset).first;
  if (end != host_end) require_open(end);
  require_reach(end, chain);
  const Nanos each = end == holder                           ? options_.local_latency
                     : end == host_end || holder == host_end ? options_.pcie_latency
                                                             : options_.link_latency;
  coordinator_ = now() + each * hops;
  return static_cast<double>(each);
}

Nanos SimBackend::now() {
  return coordinator_ = std::max(coordinator_, latest_);
}

void SimBackend::require_open(int device) const {
  if (!opened_.contains(device))
    throw std::logic_error(fmt::format("use of device {}, which was not opened", device));
}

bool SimBackend::concurrent(int device) const {
  return has(options_.concurrent_managed, device);
}

SimBackend::SimBuffer& SimBackend::own(Part part) const {
  auto* buffer = dynamic_cast<SimBuffer*>(part.buffer);
  if (buffer == nullptr) throw std::logic_error("a part without a simulated buffer");
  if (part.offset > buffer->spec.bytes || part.bytes > buffer->spec.bytes - part.offset)
    throw std::logic_error(fmt::format("[{}, +{}) lies outside buffer {} of {} bytes", part.offset,
                                       part.bytes, buffer->number, buffer->spec.bytes));
  return *buffer;
}

std::string SimBackend::show(Part part) const {
  return fmt::format("{}[{}, +{})", own(part).number, part.offset, part.bytes);
}

// Throws what a kernel meets on memory that its device cannot reach.
void SimBackend::require_reach(int end, Part part) const {
  const BufferSpec& spec = own(part).spec;
  const int holder = end_of(spec.site);
  if (end == host_end && holder != host_end && spec.kind != MemoryKind::managed)
    throw std::logic_error("a CPU in the memory of a device");
  if (spec.kind == MemoryKind::managed || spec.kind == MemoryKind::pinned || holder == end) return;
  if (spec.kind == MemoryKind::pageable ? options_.pageable_access
                                        : connected_.contains({end, holder}))
    return;
  Error error(ErrorKind::runtime,
              fmt::format("illegal memory access (700) on GPU {}: no access to {}", end,
                          text_of(spec.site)),
              end);
  error.lost = true;
  throw error;
}

// Makes `end` the home of the part's managed blocks; when that is done. Blocks that nobody has
// touched yet cost nothing.
Nanos SimBackend::migrate(int end, Part part, Nanos start, Nanos each, std::int64_t& counter) {
  SimBuffer& buffer = own(part);
  if (buffer.spec.kind != MemoryKind::managed || part.bytes == 0) return start;
  // Without concurrent access pages stay with the device that was current when they were allocated.
  if (end != host_end && !concurrent(end)) end = end_of(buffer.spec.site);
  std::int64_t moved = 0;
  for (Bytes k = part.offset / block_bytes; k * block_bytes < part.offset + part.bytes; ++k) {
    int& home = buffer.homes[k];
    if (home != nowhere && home != end) {
      ++moved;
      counters_.migrated += std::min(block_bytes, buffer.spec.bytes - k * block_bytes);
    }
    home = end;
  }
  if (moved == 0) return start;
  counter += moved;
  // One driver moves the blocks of all devices.
  Nanos& busy = busy_[migration_path];
  return busy = std::max(start, busy) + moved * each;
}

// The bytes that go each way. A kernel's device reads and writes, so a copy between others crosses
// two links.
SimBackend::Traffic SimBackend::traffic(int end, Part destination, Part source,
                                        Engine engine) const {
  const SimBuffer& to_buffer = own(destination);
  const SimBuffer& from_buffer = own(source);
  Traffic traffic;
  for (Bytes at = 0; at < source.bytes;) {
    const auto [from, readable] = from_buffer.extent(source.offset + at);
    const auto [to, writable] = to_buffer.extent(destination.offset + at);
    const Bytes step = std::min({source.bytes - at, readable, writable});
    if (engine == Engine::memcpy || (from == end && to == end)) {
      traffic[{from, to}] += step;
    } else {
      if (from != end) traffic[{from, end}] += step;
      if (to != end) traffic[{end, to}] += step;
    }
    at += step;
  }
  return traffic;
}

// Starts when every path is free; the paths then run side by side. When the last is done.
Nanos SimBackend::occupy(Nanos start, const Traffic& traffic, int percent) {
  for (const auto& [path, bytes] : traffic) start = std::max(start, busy_[path]);
  Nanos end = start;
  for (const auto& [path, bytes] : traffic) {
    const bool inside = path.first == path.second;
    const bool host = path.first == host_end || path.second == host_end;
    const Bytes rate =
        host ? (inside ? options_.host : options_.pcie) : (inside ? options_.local : options_.link);
    busy_[path] = start + duration(bytes, rate, percent);
    end = std::max(end, busy_[path]);
  }
  return end;
}

// What a fill or a check costs the coordinating thread.
void SimBackend::sweep(Site by, Part part) {
  const int end = end_of(by);
  if (end != host_end) require_open(end);
  require_reach(end, part);
  const Nanos start =
      migrate(end, part, now() + options_.launch, options_.fault, counters_.fault_groups);
  // In place: the part is both sides, and one of them is the device itself.
  coordinator_ = occupy(start, traffic(end, part, part, Engine::kernel), 100) + options_.sync;
}

}  // namespace mgpu
