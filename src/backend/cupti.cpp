// SPDX-License-Identifier: MIT
#include "backend/cupti.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace mgpu {
namespace {

// CUpti_ActivityUnifiedMemoryCounterKind. Without 3: it has an instruction's address for a value.
constexpr std::uint32_t host_to_device = 1, device_to_host = 2, gpu_page_fault = 4, thrashing = 5,
                        throttling = 6, remote_map = 7, device_to_device = 8;

/// Takes CUPTI's records while it lives.
class Collection {
 public:
  explicit Collection(const CuptiCalls& calls);  ///< throws std::runtime_error
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  Counters totals();  ///< until now; throws std::runtime_error

  static void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) noexcept;
  static void complete(void*, std::uint32_t, std::uint8_t* buffer, std::size_t,
                       std::size_t valid_bytes) noexcept;

 private:
  const CuptiCalls& calls_;
  Counters counters_;

  // CUPTI's callbacks bring no pointer of ours, and come from a thread of its own.
  static inline std::mutex mutex_;  // of the collection and its counters
  static inline Collection* current_ = nullptr;
};

void require(const CuptiCalls& calls, int result) {
  if (result != 0) throw std::runtime_error(cupti_result(result, calls));
}

constexpr std::uint32_t even_unfinished = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

Collection::Collection(const CuptiCalls& calls) : calls_(calls) {
  require(calls_, calls_.enable(cupti_unified_memory));
  const std::lock_guard lock(mutex_);
  current_ = this;
}

Collection::~Collection() {
  // No cuptiFinalize: it wants all threads out of CUDA, and has crashed processes that went on
  // (https://github.com/pytorch/kineto/pull/686).
  calls_.disable(cupti_unified_memory);
  calls_.flush_all(even_unfinished);
  const std::lock_guard lock(mutex_);
  current_ = nullptr;
}

Counters Collection::totals() {
  require(calls_, calls_.flush_all(even_unfinished));
  std::size_t dropped = 0;
  require(calls_, calls_.dropped_records(nullptr, 0, &dropped));
  if (dropped > 0) throw std::runtime_error(fmt::format("{} records were lost", dropped));
  const std::lock_guard lock(mutex_);
  return counters_;
}

void Collection::request(std::uint8_t** buffer, std::size_t* bytes,
                         std::size_t* max_records) noexcept {
  constexpr std::size_t size = std::size_t{1} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(alignof(CuptiRecord), size));
  *bytes = *buffer == nullptr ? 0 : size;
  *max_records = 0;  // as many as there is room for
}

void Collection::complete(void*, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  // CUPTI walks: it knows how long its records are, which changes with its version.
  void* next = nullptr;
  while (current_ != nullptr && current_->calls_.next_record(buffer, valid_bytes, &next) == 0) {
    CuptiRecord record;
    std::memcpy(&record.kind, next, sizeof record.kind);
    if (record.kind == cupti_unified_memory) std::memcpy(&record, next, sizeof record);
    add_record(current_->counters_, record);
  }
  std::free(buffer);
}

void add_pair(Counters& counters, int from, int to, double bytes) {
  const auto key = [](const Counters::Pair& pair) { return std::pair(pair.from, pair.to); };
  auto& pairs = counters.pairs;
  auto place = std::ranges::lower_bound(pairs, std::pair(from, to), {}, key);
  if (place == pairs.end() || key(*place) != std::pair(from, to))
    place = pairs.insert(place, {from, to, 0});
  place->bytes += bytes;
}

/// Of this CUpti_ActivityUnifiedMemoryMigrationCause.
double* bytes_by_cause(Counters::ByCause& causes, std::uint32_t cause) {
  switch (cause) {
    case 1:
      return &causes.user;
    case 2:
      return &causes.coherence;
    case 3:
      return &causes.prefetch;
    case 4:
      return &causes.eviction;
    case 5:
      return &causes.access_counter;
    default:
      return nullptr;
  }
}

std::string told(const std::runtime_error& error) {
  return std::string("CUPTI: ") + error.what();
}

}  // namespace

void add_record(Counters& counters, const CuptiRecord& record) {
  if (record.kind != cupti_unified_memory) return;
  constexpr int host = -1;
  const auto value = static_cast<double>(record.value);
  const int source = static_cast<int>(record.source);
  const int destination = static_cast<int>(record.destination);
  switch (record.counter) {
    case host_to_device:
      counters.h2d_bytes += value;
      add_pair(counters, host, destination, value);
      break;
    case device_to_host:
      counters.d2h_bytes += value;
      add_pair(counters, source, host, value);
      break;
    case device_to_device:
      counters.d2d_bytes += value;
      add_pair(counters, source, destination, value);
      if (double* const bytes = bytes_by_cause(counters.d2d_by_cause, record.flags))
        *bytes += value;
      break;
    case gpu_page_fault:
      counters.fault_groups += value;
      break;
    case thrashing:
      counters.thrashing += value;
      break;
    case throttling: {
      constexpr std::uint32_t of_the_host = 1;  // CUPTI_ACTIVITY_FLAG_THROTTLING_IN_CPU
      if ((record.flags & of_the_host) == 0 && record.end_ns > record.start_ns)
        counters.throttling_ns += static_cast<double>(record.end_ns - record.start_ns);
      break;
    }
    case remote_map:
      counters.remote_map_bytes += value;
      break;
    default:
      break;
  }
}

MigrationCounter::MigrationCounter(const std::function<CuptiCalls()>& load) {
  try {
    const CuptiCalls calls = load();
    constexpr std::uint32_t one_device = 1;  // no longer looked at, but it has to be a valid scope
    std::vector<CuptiConfig> configs;
    for (const auto counter : {host_to_device, device_to_host, gpu_page_fault, thrashing,
                               throttling, remote_map, device_to_device})
      configs.push_back({one_device, counter, 0, 1});
    require(calls, calls.register_callbacks(Collection::request, Collection::complete));
    require(calls, calls.configure(configs.data(), static_cast<std::uint32_t>(configs.size())));
    calls_ = calls;
  } catch (const std::runtime_error& error) {
    why_ = told(error);
  }
}

Counted MigrationCounter::count(const std::function<void()>& work) {
  std::optional<Collection> collection;
  std::string why = why_;
  try {
    if (calls_) collection.emplace(*calls_);
  } catch (const std::runtime_error& error) {
    why = told(error);
  }
  work();
  if (!collection) return why;
  try {
    return collection->totals();
  } catch (const std::runtime_error& error) {
    return told(error);
  }
}

}  // namespace mgpu
