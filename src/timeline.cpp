// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>

namespace mgpu {
namespace {

const char* word(StepKind kind) {
  switch (kind) {
    case StepKind::own:
      return "wait for owner";
    case StepKind::prefetch:
      return "prefetch";
    case StepKind::copy:
      return "launch";
    case StepKind::advise:
    case StepKind::release:
      break;
  }
  return "";
}

}  // namespace

void Timeline::add(std::span<const LaneRecord> records, const PassResult& pass) {
  passes_.push_back({pass, {records.begin(), records.end()}});
}

std::vector<TimelineSample> Timeline::samples(std::span<const Lane> lanes) const {
  if (passes_.empty()) return {};
  std::vector<const Pass*> ordered;
  for (const Pass& pass : passes_) ordered.push_back(&pass);
  std::ranges::sort(ordered, {}, [](const Pass* pass) { return pass->result.wall; });

  const auto drawn = [&](const char* which, const Pass& pass) {
    TimelineSample sample{which, static_cast<double>(pass.result.wall), {}};
    for (std::size_t i = 0; i < pass.records.size(); ++i) {
      const LaneRecord& record = pass.records[i];
      const auto add = [&](bool on_device, const char* what, Nanos start, Nanos end) {
        sample.spans.push_back({static_cast<int>(i), lanes[i].device, on_device, what,
                                static_cast<double>(start - pass.result.release),
                                static_cast<double>(end - pass.result.release)});
      };
      add(false, "launching kernel", record.start, record.launched);
      for (const LaneSpan& span : record.spans) add(false, word(span.kind), span.start, span.end);
      add(false, "synchronize", record.end - record.sync, record.end);
      if (record.prefetch_start > 0)
        add(true, "prefetch", record.prefetch_start, record.device_start);
      add(true, "copy", record.device_start, record.device_end);
    }
    return sample;
  };
  return {drawn("typical", *ordered[ordered.size() / 2]), drawn("worst", *ordered.back())};
}

}  // namespace mgpu
