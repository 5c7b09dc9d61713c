// SPDX-License-Identifier: MIT
#include "model/schedule.hpp"

#include "model/runtimes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace mgpu {
namespace {

// A product of two 64-bit numbers may wrap; the quotient and the remainder of size / n keep every
// term below size.
Bytes share(Bytes size, Bytes n, Bytes i) {
  return size / n * i + size % n * i / n;
}

struct Side {
  std::vector<Range> slices;  // by slice number
  std::vector<int> devices;   // where each slice lives
};

bool one_allocation(MemoryKind memory, const Place& place) {
  return memory == MemoryKind::managed || place.kind != Place::Kind::local;
}

// Appends the buffers of one array and tells where each slice lies in them.
Side lay_out(const Case& what, MemoryKind memory, const Place& place,
             std::vector<BufferSpec>& buffers) {
  Side side;
  const bool whole = one_allocation(memory, place);
  const int array = static_cast<int>(buffers.size());
  if (whole) {
    const int home = place.kind == Place::Kind::device ? place.device : what.gpus.front();
    buffers.push_back({memory, home, what.size});
  }
  for (int i = 0; i < what.split; ++i) {
    const auto [begin, end] = slice_bounds(what.size, what.split, i, what.align);
    const int executing = what.gpus[static_cast<std::size_t>(i) % what.gpus.size()];
    const int device = place.kind == Place::Kind::device ? place.device : executing;
    if (whole) {
      side.slices.push_back({array, begin, end - begin});
    } else {
      if (begin != end) buffers.push_back({memory, device, end - begin});
      side.slices.push_back({static_cast<int>(buffers.size()) - 1, 0, end - begin});
    }
    side.devices.push_back(device);
  }
  return side;
}

Step step(StepKind kind, Range range) {
  Step made;
  made.kind = kind;
  made.range = range;
  return made;
}

Range whole(const std::vector<BufferSpec>& buffers, int buffer) {
  return {buffer, 0, buffers[static_cast<std::size_t>(buffer)].bytes};
}

// The steps of every execution. Arrays are taken in the order of their numbers, so that two lanes
// that hold records cannot wait for each other.
std::vector<Step> sample_steps(const Case& what, const std::vector<BufferSpec>& buffers,
                               const Lane& lane) {
  std::vector<Step> steps;
  std::vector<Range> arguments = {lane.destination, lane.source};
  std::ranges::sort(arguments, {}, &Range::buffer);
  for (const Range& argument : arguments) {
    const bool managed =
        buffers[static_cast<std::size_t>(argument.buffer)].kind == MemoryKind::managed;
    if (what.owner_wait != OwnerWait::none) {
      Step own = step(StepKind::own, {argument.buffer, 0, 0});
      own.wait = what.owner_wait;
      own.lock = what.owner_lock;
      // CUDA.jl waits at every launch for memory of another device (v5.4, memory.jl).
      own.even_own = what.runtime && knobs_of(*what.runtime).waits_own && !managed &&
                     buffers[static_cast<std::size_t>(argument.buffer)].device != lane.device;
      steps.push_back(own);
    }
    for (int repeat = 0; managed && repeat < what.prefetch_repeats; ++repeat) {
      if (what.prefetch == Prefetch::slice) steps.push_back(step(StepKind::prefetch, argument));
      if (what.prefetch == Prefetch::array)
        steps.push_back(step(StepKind::prefetch, whole(buffers, argument.buffer)));
    }
  }
  Step copy = step(StepKind::copy, lane.destination);
  copy.source = lane.source;
  steps.push_back(copy);
  if (what.owner_wait != OwnerWait::none && what.owner_lock == OwnerLock::launch)
    steps.push_back(step(StepKind::release, {}));
  return steps;
}

std::vector<Step> setup_steps(const Case& what, const std::vector<BufferSpec>& buffers,
                              const Lane& lane) {
  std::vector<Step> steps;
  const auto managed = [&](const Range& range) {
    return buffers[static_cast<std::size_t>(range.buffer)].kind == MemoryKind::managed;
  };
  for (const Range& range : {lane.destination, lane.source})
    if (managed(range) && what.prefetch == Prefetch::once)
      steps.push_back(step(StepKind::prefetch, range));
  return steps;
}

std::vector<Step> advice_steps(const Case& what, const Lane& lane) {
  std::vector<Step> steps;
  const auto advise = [&](const Range& range, int home) {
    Step made = step(StepKind::advise, range);
    made.advice = what.advise;
    made.home = home;
    steps.push_back(made);
  };
  if (what.advise == Advice::none) return steps;
  advise(lane.source, lane.source_device);
  // A write collapses the copies that read-mostly makes, so a destination must not have it.
  if (what.advise != Advice::read_mostly) advise(lane.destination, lane.destination_device);
  return steps;
}

}  // namespace

std::pair<Bytes, Bytes> slice_bounds(Bytes size, int n, int i, Bytes align) {
  const auto count = static_cast<Bytes>(n), index = static_cast<Bytes>(i);
  const Bytes unit = size / count < align ? std::min<Bytes>(align, 16) : align;
  const auto bound = [&](Bytes k) {
    return k == count ? size : share(size, count, k) / unit * unit;
  };
  return {bound(index), bound(index + 1)};
}

Schedule make_schedule(const Case& what) {
  Schedule schedule;
  const Side source = lay_out(what, what.source_memory, what.from, schedule.buffers);
  const Side destination = lay_out(what, what.destination_memory, what.to, schedule.buffers);
  std::set<std::pair<int, int>> peers;
  for (std::size_t i = 0; i < source.slices.size(); ++i) {
    if (source.slices[i].bytes == 0) continue;
    Lane lane;
    lane.device = what.gpus[i % what.gpus.size()];
    lane.slice = static_cast<int>(i);
    lane.base = slice_bounds(what.size, what.split, lane.slice, what.align).first;
    lane.source = source.slices[i];
    lane.destination = destination.slices[i];
    lane.source_device = source.devices[i];
    lane.destination_device = destination.devices[i];
    lane.advice = advice_steps(what, lane);
    lane.setup = setup_steps(what, schedule.buffers, lane);
    lane.sample = sample_steps(what, schedule.buffers, lane);
    // Managed memory needs no peer access: the driver moves or maps its pages by itself.
    if (what.source_memory != MemoryKind::managed && lane.source_device != lane.device)
      peers.insert({lane.device, lane.source_device});
    if (what.destination_memory != MemoryKind::managed && lane.destination_device != lane.device)
      peers.insert({lane.device, lane.destination_device});
    schedule.lanes.push_back(std::move(lane));
  }
  schedule.peers.assign(peers.begin(), peers.end());
  return schedule;
}

Schedule truncated(Schedule schedule, Bytes bytes_per_lane) {
  for (Lane& lane : schedule.lanes) {
    const auto cut = [&](Range& range) {
      const Range& own = range.buffer == lane.source.buffer ? lane.source : lane.destination;
      range = {range.buffer, own.offset, std::min(own.bytes, bytes_per_lane)};
    };
    for (Step& each : lane.sample) {
      if (each.kind == StepKind::prefetch || each.kind == StepKind::copy) cut(each.range);
      if (each.kind == StepKind::copy) cut(each.source);
    }
  }
  return schedule;
}

std::vector<MemoryNeed> memory_needed(const Case& what) {
  std::map<int, MemoryNeed> needs;
  const auto add = [&](int device, Bytes bytes, bool managed) {
    MemoryNeed& need = needs[device];
    need.device = device;
    // Saturation keeps a wrapped sum from passing the guard.
    need.bytes = checked_add(need.bytes, bytes).value_or(~Bytes{0});
    if (managed) need.managed = checked_add(need.managed, bytes).value_or(~Bytes{0});
  };
  const Schedule schedule = make_schedule(what);
  for (std::size_t b = 0; b < schedule.buffers.size(); ++b) {
    const BufferSpec& buffer = schedule.buffers[b];
    if (buffer.kind != MemoryKind::managed) {
      add(buffer.device, buffer.bytes, false);
      continue;
    }
    // Managed pages are with whoever touched them last: at home, or with the device that copies
    // them, or all of them with every device that prefetches the whole array.
    std::map<int, Bytes> most;
    for (const Lane& lane : schedule.lanes) {
      const bool is_source = lane.source.buffer == static_cast<int>(b);
      if (!is_source && lane.destination.buffer != static_cast<int>(b)) continue;
      const Bytes bytes = is_source ? lane.source.bytes : lane.destination.bytes;
      const int home = is_source ? lane.source_device : lane.destination_device;
      most[lane.device] += bytes;
      if (home != lane.device) most[home] += bytes;
      if (what.prefetch == Prefetch::array) most[lane.device] = buffer.bytes;
    }
    for (const auto& [device, bytes] : most) add(device, std::min(bytes, buffer.bytes), true);
  }
  std::vector<MemoryNeed> result;
  for (const auto& [device, need] : needs) result.push_back(need);
  return result;
}

std::vector<std::string> describe_steps(const Schedule& schedule, const Lane& lane) {
  const auto part = [](const Range& range) {
    return fmt::format("buffer {} [{}, +{})", range.buffer, range.offset, range.bytes);
  };
  std::vector<std::string> lines;
  const auto add = [&](const Step& each, std::string_view prefix) {
    switch (each.kind) {
      case StepKind::advise:
        lines.push_back(
            fmt::format("{}advise {}: {}", prefix, part(each.range), name(each.advice)));
        break;
      case StepKind::own:
        lines.push_back(fmt::format(
            "{}own buffer {}: {} waits for its last user{}", prefix, each.range.buffer,
            each.wait == OwnerWait::host ? "the host" : "the stream",
            each.even_own ? ", even if that is this stream" : ", if that is another stream"));
        break;
      case StepKind::prefetch:
        lines.push_back(
            fmt::format("{}prefetch {} to device {}", prefix, part(each.range), lane.device));
        break;
      case StepKind::copy:
        lines.push_back(
            fmt::format("{}copy {} <- {}", prefix, part(each.range), part(each.source)));
        break;
      case StepKind::release:
        lines.push_back(fmt::format("{}release all buffers owned", prefix));
        break;
    }
  };
  for (const Step& each : lane.advice) add(each, "first: ");
  for (const Range& range : {lane.source, lane.destination}) {
    const BufferSpec& buffer = schedule.buffers[static_cast<std::size_t>(range.buffer)];
    lines.push_back(
        fmt::format("once: touch {} ({}) by device {}", part(range), name(buffer.kind),
                    range == lane.source ? lane.source_device : lane.destination_device));
  }
  for (const Step& each : lane.setup) add(each, "once: ");
  for (const Step& each : lane.sample) add(each, "");
  lines.emplace_back("synchronize");
  return lines;
}

}  // namespace mgpu
