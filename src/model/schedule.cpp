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
  std::vector<Site> sites;    // where each slice lives
};

// Whether slices share an array.
bool one_allocation(MemoryKind memory, const Place& place) {
  return memory == MemoryKind::managed || place.kind == Place::Kind::device ||
         place.kind == Place::Kind::node;
}

int executor(const Case& what, int slice) {
  return what.gpus[static_cast<std::size_t>(slice) % what.gpus.size()];
}

// Appends the buffers of one array and tells where each slice lies in them.
Side lay_out(const Case& what, MemoryKind memory, const Place& place,
             std::vector<BufferSpec>& buffers) {
  Side side;
  const bool whole = one_allocation(memory, place);
  const int array = static_cast<int>(buffers.size());
  if (whole) buffers.push_back({memory, site_of(place, what.gpus.front()), what.size});
  for (int i = 0; i < what.split; ++i) {
    const auto [begin, end] = slice_bounds(what.size, what.split, i, what.align);
    const Site site = site_of(place, executor(what, i));
    if (whole) {
      side.slices.push_back({array, begin, end - begin});
    } else {
      if (begin != end) buffers.push_back({memory, site, end - begin});
      side.slices.push_back({static_cast<int>(buffers.size()) - 1, 0, end - begin});
    }
    side.sites.push_back(site);
  }
  return side;
}

// Who copies back what `device` copies from one site to another: the other GPU of a pair, so that a
// read is mirrored by a read; else the same one.
int mirrored(int device, const Site& from, const Site& to) {
  if (from.on_host() || to.on_host() || from == to) return device;
  return from.is(device) ? to.index : to.is(device) ? from.index : device;
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
                     !buffers[static_cast<std::size_t>(argument.buffer)].site.is(lane.device);
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
  const auto advise = [&](const Range& range, Site home) {
    Step made = step(StepKind::advise, range);
    made.advice = what.advise;
    made.home = home;
    steps.push_back(made);
  };
  if (what.advise == Advice::none) return steps;
  advise(lane.source, lane.source_site);
  // A write collapses the copies that read-mostly makes, so a destination must not have it.
  if (what.advise != Advice::read_mostly) advise(lane.destination, lane.destination_site);
  return steps;
}

}  // namespace

std::string to_string(const Site& site) {
  switch (site.kind) {
    case Site::Kind::device:
      return fmt::format("device {}", site.index);
    case Site::Kind::near:
      return fmt::format("the host near device {}", site.index);
    case Site::Kind::node:
      return fmt::format("NUMA node {}", site.index);
  }
  return "";
}

std::string slice_name(const Lane& lane) {
  return fmt::format("slice {}{}", lane.slice, lane.reverse ? " of the reverse arrays" : "");
}

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
  std::set<std::pair<int, int>> peers;
  const auto add_lanes = [&](bool reverse) {
    const Place from = reverse ? what.to : what.from, to = reverse ? what.from : what.to;
    const MemoryKind source_memory = reverse ? what.destination_memory : what.source_memory;
    const MemoryKind destination_memory = reverse ? what.source_memory : what.destination_memory;
    const Side source = lay_out(what, source_memory, from, schedule.buffers);
    const Side destination = lay_out(what, destination_memory, to, schedule.buffers);
    for (std::size_t i = 0; i < source.slices.size(); ++i) {
      if (source.slices[i].bytes == 0) continue;
      Lane lane;
      lane.slice = static_cast<int>(i);
      lane.reverse = reverse;
      lane.device = executor(what, lane.slice);
      lane.base = slice_bounds(what.size, what.split, lane.slice, what.align).first;
      lane.source = source.slices[i];
      lane.destination = destination.slices[i];
      lane.source_site = source.sites[i];
      lane.destination_site = destination.sites[i];
      if (reverse) {
        lane.device = mirrored(lane.device, lane.source_site, lane.destination_site);
        // So that no byte of one direction passes for one of the other.
        lane.base += what.size;
      }
      lane.advice = advice_steps(what, lane);
      lane.setup = setup_steps(what, schedule.buffers, lane);
      lane.sample = sample_steps(what, schedule.buffers, lane);
      // Managed memory needs no peer access: the driver moves or maps its pages by itself.
      const auto reach = [&](MemoryKind memory, const Site& site) {
        if (memory == MemoryKind::device && !site.is(lane.device))
          peers.insert({lane.device, site.index});
      };
      reach(source_memory, lane.source_site);
      reach(destination_memory, lane.destination_site);
      schedule.lanes.push_back(std::move(lane));
    }
  };
  add_lanes(false);
  if (what.bidirectional) add_lanes(true);
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
  std::map<Site, MemoryNeed> needs;
  const auto add = [&](const Site& site, Bytes bytes, bool managed) {
    MemoryNeed& need = needs[site];
    need.site = site;
    // Saturation keeps a wrapped sum from passing the guard.
    need.bytes = checked_add(need.bytes, bytes).value_or(~Bytes{0});
    if (managed) need.managed = checked_add(need.managed, bytes).value_or(~Bytes{0});
  };
  const Schedule schedule = make_schedule(what);
  for (std::size_t b = 0; b < schedule.buffers.size(); ++b) {
    const BufferSpec& buffer = schedule.buffers[b];
    if (buffer.kind != MemoryKind::managed) {
      add(buffer.site, buffer.bytes, false);
      continue;
    }
    // Managed pages are with whoever touched them last: at home, or with the device that copies
    // them, or all of them with every device that prefetches the whole array.
    std::map<Site, Bytes> most;
    for (const Lane& lane : schedule.lanes) {
      const bool is_source = lane.source.buffer == static_cast<int>(b);
      if (!is_source && lane.destination.buffer != static_cast<int>(b)) continue;
      const Bytes bytes = is_source ? lane.source.bytes : lane.destination.bytes;
      const Site home = is_source ? lane.source_site : lane.destination_site;
      const Site executing = on_device(lane.device);
      most[executing] += bytes;
      if (home != executing) most[home] += bytes;
      if (what.prefetch == Prefetch::array) most[executing] = buffer.bytes;
    }
    for (const auto& [site, bytes] : most) add(site, std::min(bytes, buffer.bytes), true);
  }
  std::vector<MemoryNeed> result;
  for (const auto& [site, need] : needs) result.push_back(need);
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
        fmt::format("once: touch {} ({}) by {}", part(range), name(buffer.kind),
                    to_string(range == lane.source ? lane.source_site : lane.destination_site)));
  }
  for (const Step& each : lane.setup) add(each, "once: ");
  for (const Step& each : lane.sample) add(each, "");
  lines.emplace_back("synchronize");
  return lines;
}

}  // namespace mgpu
