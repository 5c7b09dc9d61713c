// SPDX-License-Identifier: MIT
#include "faulty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace mgpu {
namespace {

using Call = Fault::Call;
using Act = Fault::Act;

std::string_view name(Call call) {
  constexpr auto names = std::to_array<std::string_view>(
      {"machine", "open", "connect", "free_memory", "allocate", "open_worker", "fill", "check",
       "begin", "advise", "prefetch", "copy", "mark", "wait_for", "sync", "anchor", "at", "chase"});
  return names.at(static_cast<std::size_t>(call));
}

bool possible(const Fault& fault) {
  switch (fault.act) {
    case Act::fail:
    case Act::hang:
      return true;
    case Act::flip:
    case Act::zero:
      return fault.call == Call::copy;
    case Act::skip:
      return fault.call == Call::connect || fault.call == Call::fill ||
             fault.call == Call::advise || fault.call == Call::prefetch ||
             fault.call == Call::copy || fault.call == Call::wait_for;
  }
  return false;
}

/// Faults know devices by their ordinals; the host has none.
std::optional<int> ordinal(const Site& site) {
  return site.on_host() ? std::nullopt : std::optional(site.index);
}

// The one place where a pattern's word is zero: index + 1 + (key << 44) is 2^64 there. No array
// reaches that far.
constexpr Pattern zero_pattern = {(std::uint64_t{1} << 20) - 1, false};
constexpr Bytes zero_base = ((Bytes{1} << 44) - 1) * 8;
static_assert(pattern_word(zero_pattern, zero_base / 8) == 0);

}  // namespace

class FaultyBackend::FaultyWorker final : public Worker {
 public:
  FaultyWorker(FaultyBackend& backend, int device)
      : backend_(backend), device_(device), inner_(backend.inner_->open_worker(device)) {}

  Nanos begin(Nanos release) override {
    strike(Call::begin);
    return inner_->begin(release);
  }
  Nanos now() override { return inner_->now(); }
  void advise(Part part, Advice advice, Site home) override {
    if (!strike(Call::advise)) inner_->advise(part, advice, home);
  }
  void prefetch(Part part, Site to) override {
    if (!strike(Call::prefetch)) inner_->prefetch(part, to);
  }
  void copy(Part destination, Part source, Engine engine, int access) override {
    const std::optional<Fault> fault = strike(Call::copy);
    if (fault && fault->act == Act::skip) return;
    inner_->copy(destination, source, engine, access);
    if (!fault) return;
    // The damage must come after the copy, and fills do not follow streams.
    inner_->sync();
    if (fault->act == Act::flip)
      backend_.flip(device_, {destination.buffer, destination.offset + fault->offset, 1});
    else
      backend_.zero(device_, *inner_, destination);
  }
  int mark() override {
    strike(Call::mark);
    return inner_->mark();
  }
  void wait_for(Worker& other, OwnerWait how) override {
    // Every worker of a case comes from this backend, and the inner one knows its own only.
    if (!strike(Call::wait_for)) inner_->wait_for(*static_cast<FaultyWorker&>(other).inner_, how);
  }
  void sync() override {
    strike(Call::sync);
    inner_->sync();
  }
  void anchor() override {
    strike(Call::anchor);
    inner_->anchor();
  }
  Nanos at(int mark) override {
    strike(Call::at);
    return inner_->at(mark);
  }

 private:
  std::optional<Fault> strike(Call call) { return backend_.strike(call, device_); }

  FaultyBackend& backend_;
  int device_;
  std::unique_ptr<Worker> inner_;
};

FaultyBackend::FaultyBackend(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults,
                             std::function<void(Machine&)> edit)
    : inner_(std::move(inner)), edit_(std::move(edit)) {
  for (const Fault& fault : faults) {
    if (!possible(fault))
      throw std::logic_error(fmt::format("this fault cannot happen to {}", name(fault.call)));
    armed_.push_back({fault});
  }
}

Machine FaultyBackend::machine() {
  strike(Call::machine, std::nullopt);
  Machine machine = inner_->machine();
  if (edit_) edit_(machine);
  return machine;
}

void FaultyBackend::open(std::span<const int> devices, Wait wait, Affinity affinity) {
  strike(Call::open, std::nullopt);
  inner_->open(devices, wait, affinity);
}

void FaultyBackend::connect(int device, int peer) {
  if (!strike(Call::connect, device)) inner_->connect(device, peer);
}

Bytes FaultyBackend::free_memory(Site site) {
  strike(Call::free_memory, ordinal(site));
  return inner_->free_memory(site);
}

std::unique_ptr<Buffer> FaultyBackend::allocate(const BufferSpec& spec) {
  strike(Call::allocate, ordinal(spec.site));
  return inner_->allocate(spec);
}

std::unique_ptr<Worker> FaultyBackend::open_worker(int device) {
  strike(Call::open_worker, device);
  return std::make_unique<FaultyWorker>(*this, device);
}

void FaultyBackend::fill(Site by, Part part, Pattern pattern, Bytes base) {
  if (!strike(Call::fill, ordinal(by))) inner_->fill(by, part, pattern, base);
}

Check FaultyBackend::check(Site by, Part part, Pattern pattern, Bytes base) {
  strike(Call::check, ordinal(by));
  return inner_->check(by, part, pattern, base);
}

double FaultyBackend::chase(Site by, Part chain, int hops) {
  strike(Call::chase, ordinal(by));
  return inner_->chase(by, chain, hops);
}

void FaultyBackend::release() {
  released_ = true;
  released_.notify_all();
}

// Counts the call, then fails or hangs where that is due; else what the caller has to do to it.
std::optional<Fault> FaultyBackend::strike(Call call, std::optional<int> device) {
  std::optional<Fault> due;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) throw Error(*lost_);
    for (Armed& armed : armed_) {
      const Fault& fault = armed.fault;
      if (fault.call != call || (fault.device && fault.device != device)) continue;
      ++armed.seen;
      if (armed.seen >= fault.nth && armed.seen - fault.nth < fault.times && !due) due = fault;
    }
    if (!due) return due;
    ++fired_;
    if (due->act == Act::fail) {
      Error error(due->kind,
                  device
                      ? fmt::format("injected fault: {} on device {} failed", name(call), *device)
                      : fmt::format("injected fault: {} failed", name(call)),
                  device);
      error.lost = due->lost;
      if (error.lost) lost_ = error;
      throw error;
    }
  }
  if (due->act != Act::hang) return due;
  hung_ = true;
  hung_.notify_all();
  released_.wait(false);
  return std::nullopt;
}

// A backend writes patterns alone: find what the byte is, then where some pattern has the wanted
// one.
void FaultyBackend::flip(int device, Part byte) {
  const Site by{Site::Kind::device, device};
  const Check found = inner_->check(by, byte, Pattern{}, 0);
  const unsigned char now = found.bad > 0 ? found.got[0] : pattern_byte(Pattern{}, 0);
  Bytes base = 0;
  while (pattern_byte(Pattern{}, base) != (now ^ 1)) ++base;
  inner_->fill(by, byte, Pattern{}, base);
}

// A zero word, then what is already zero copied behind itself.
void FaultyBackend::zero(int device, Worker& worker, Part part) {
  Bytes done = std::min<Bytes>(8, part.bytes);
  const Site by{Site::Kind::device, device};
  inner_->fill(by, {part.buffer, part.offset, done}, zero_pattern, zero_base);
  while (done < part.bytes) {
    const Bytes step = std::min(done, part.bytes - done);
    worker.copy({part.buffer, part.offset + done, step}, {part.buffer, part.offset, step},
                Engine::memcpy, 16);
    done += step;
  }
  worker.sync();
}

}  // namespace mgpu
