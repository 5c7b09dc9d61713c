// SPDX-License-Identifier: MIT
#include "phases.hpp"

#include "model/paths.hpp"
#include "model/stats.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

namespace mgpu {
namespace {

constexpr std::size_t max_records = 4'000'000;

// Length of the union of intervals: lanes of one device may run at once or one after the other.
double covered(std::vector<std::pair<double, double>> intervals) {
  std::ranges::sort(intervals);
  double length = 0, reached = -std::numeric_limits<double>::infinity();
  for (const auto& [start, end] : intervals) {
    if (end > reached) length += end - std::max(start, reached);
    reached = std::max(reached, end);
  }
  return length;
}

}  // namespace

Phases::Phases(const Schedule& schedule) : schedule_(schedule) {}

void Phases::add(std::span<const LaneRecord> records, const PassResult& pass, int batch) {
  if (samples_.size() + records.size() > max_records) return;
  const auto each = [&](Nanos ns) { return static_cast<float>(ns) / static_cast<float>(batch); };
  for (const LaneRecord& record : records)
    samples_.push_back({static_cast<float>(record.start - pass.release), each(record.wait),
                        each(record.prefetch), each(record.launch), each(record.sync),
                        each(record.end - pass.release)});
}

void Phases::add_marked(std::span<const LaneRecord> records, const PassResult& pass, int batch) {
  for (const LaneRecord& record : records)
    marked_.push_back({static_cast<double>(record.device_start - pass.release) / batch,
                       static_cast<double>(record.device_end - pass.release) / batch});
  marked_walls_.push_back(static_cast<double>(pass.wall) / batch);
}

void Phases::summarize(CaseResult& result, const Case& what, const Machine& machine) const {
  const auto rate = [&](double bytes) {
    return Rate{bytes / result.summary.median * 1e9, bytes / result.summary.min * 1e9,
                bytes / result.summary.max * 1e9};
  };
  result.basis = basis_of(what, machine);
  const double counted = result.basis == Basis::moved ? 2 : 1;  // a byte of payload
  std::map<int, DeviceResult> devices;
  std::vector<int> order = what.gpus;  // then those that copy the other way alone
  for (const int gpu : what.gpus) devices[gpu].index = gpu;
  for (const Lane& lane : schedule_.lanes) {
    if (!devices.contains(lane.device)) order.push_back(lane.device);
    DeviceResult& device = devices[lane.device];
    device.index = lane.device;
    device.bytes += lane.destination.bytes;
    ++device.slices;
    result.bytes_copied += lane.destination.bytes;
  }
  result.bytes_moved = 2 * result.bytes_copied;
  result.rates = {rate(static_cast<double>(result.bytes_copied)),
                  rate(static_cast<double>(result.bytes_moved))};

  const std::size_t lanes = schedule_.lanes.size();
  if (lanes == 0) return;
  const std::size_t samples = samples_.size() / lanes, marked = marked_walls_.size();
  std::vector<double> busy(marked);
  for (auto& [ordinal, device] : devices) {
    if (device.slices == 0) continue;
    const auto own = [&, gpu = ordinal](std::size_t lane) {
      return schedule_.lanes[lane].device == gpu;
    };
    // A phase of a device is that of its slowest lane in each sample: with an owner wait the lanes
    // take turns in waiting, and the median of one lane alone would hide it.
    const auto slowest = [&](float LanePhases::*phase) {
      std::vector<double> values;
      values.reserve(samples);
      for (std::size_t s = 0; s < samples; ++s) {
        float most = 0;
        for (std::size_t l = 0; l < lanes; ++l)
          if (own(l)) most = std::max(most, samples_[s * lanes + l].*phase);
        values.push_back(most);
      }
      return median(std::move(values));
    };
    if (samples > 0) {
      device.wait_ns = slowest(&LanePhases::wait);
      device.prefetch_ns = slowest(&LanePhases::prefetch);
      device.launch_ns = slowest(&LanePhases::launch);
      device.sync_ns = slowest(&LanePhases::sync);
      std::vector<double> skews;
      for (std::size_t s = 0; s < samples; ++s) {
        float first = std::numeric_limits<float>::max(), mine = first;
        for (std::size_t l = 0; l < lanes; ++l) {
          const float start = samples_[s * lanes + l].start;
          first = std::min(first, start);
          if (own(l)) mine = std::min(mine, start);
        }
        skews.push_back(mine - first);
      }
      device.skew_ns = median(std::move(skews));
    }
    if (marked > 0) {
      std::vector<double> times;
      for (std::size_t s = 0; s < marked; ++s) {
        std::vector<std::pair<double, double>> intervals;
        for (std::size_t l = 0; l < lanes; ++l)
          if (own(l))
            intervals.emplace_back(marked_[s * lanes + l].start, marked_[s * lanes + l].end);
        times.push_back(covered(std::move(intervals)));
        busy[s] += times.back();
      }
      const auto [shortest, longest] = std::ranges::minmax(times);
      device.device_min_ns = shortest;
      device.device_max_ns = longest;
      device.device_ns = median(std::move(times));
      device.event_samples = static_cast<std::int64_t>(marked);
      std::vector<Lane> lanes_of_it;
      std::ranges::copy_if(schedule_.lanes, std::back_inserter(lanes_of_it),
                           [gpu = ordinal](const Lane& lane) { return lane.device == gpu; });
      if (*device.device_ns > 0) {
        device.rate = counted * 1e9 * static_cast<double>(device.bytes) / *device.device_ns;
        if (const auto limit = limit_of(what, lanes_of_it, machine)) {
          device.of_peak = limit->ns / *device.device_ns;
          device.bottleneck = limit->by;
        }
      }
    }
  }
  if (marked > 0) {
    std::vector<double> overlaps;
    for (std::size_t s = 0; s < marked; ++s) overlaps.push_back(busy[s] / marked_walls_[s]);
    result.overlap = median(std::move(overlaps));
    result.event_median_ns = median(marked_walls_);
  }
  for (const int gpu : order) {
    const Device& device = machine.devices[static_cast<std::size_t>(gpu)];
    if (what.affinity == Affinity::near && what.threads != Threads::single)
      devices[gpu].cpus = device.cpus;
    result.per_device.push_back(std::move(devices[gpu]));
  }
  if (const auto limit = limit_of(what, schedule_.lanes, machine)) {
    result.of_peak = limit->ns / result.summary.median;
    result.bottleneck = limit->by;
  }
  if (what.bidirectional)
    for (const Direction way : {Direction::forward, Direction::reverse})
      result.per_direction.push_back(direction(way, samples, marked));
}

DirectionResult Phases::direction(Direction which, std::size_t samples, std::size_t marked) const {
  const std::size_t lanes = schedule_.lanes.size();
  DirectionResult way;
  way.direction = which;
  const bool reverse = which == Direction::reverse;
  std::vector<std::size_t> own;
  for (std::size_t l = 0; l < lanes; ++l) {
    if (schedule_.lanes[l].reverse != reverse) continue;
    own.push_back(l);
    way.bytes += schedule_.lanes[l].destination.bytes;
  }
  std::vector<double> times, device_times;
  for (std::size_t s = 0; s < samples; ++s) {
    double last = 0;
    for (const std::size_t l : own) last = std::max<double>(last, samples_[s * lanes + l].end);
    times.push_back(last);
  }
  for (std::size_t s = 0; s < marked; ++s) {
    double start = std::numeric_limits<double>::max(), end = std::numeric_limits<double>::lowest();
    for (const std::size_t l : own) {
      start = std::min(start, marked_[s * lanes + l].start);
      end = std::max(end, marked_[s * lanes + l].end);
    }
    device_times.push_back(end - start);
  }
  if (!times.empty()) way.time_ns = median(std::move(times));
  if (!device_times.empty()) way.device_ns = median(std::move(device_times));
  if (way.time_ns > 0) way.rate = static_cast<double>(way.bytes) / way.time_ns * 1e9;
  return way;
}

}  // namespace mgpu
