// SPDX-License-Identifier: MIT
#include "model/differences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <utility>

namespace mgpu {
namespace {

/// Of the machines and versions that results come from; a new one is a row.
struct Setting {
  std::string_view what;
  std::string (*text)(const Report&);
};
constexpr auto settings = std::to_array<Setting>({
    {"mgpu", [](const Report& r) { return r.tool_version; }},
    {"host", [](const Report& r) { return r.machine.host.name; }},
    {"kernel", [](const Report& r) { return r.machine.host.kernel; }},
    {"driver", [](const Report& r) { return r.machine.driver.version; }},
    {"CUDA of the driver", [](const Report& r) { return r.machine.driver.cuda; }},
    {"CUDA runtime", [](const Report& r) { return r.machine.driver.runtime; }},
});

/// Read right after the samples.
struct Clock {
  std::string_view what;
  std::optional<int> Telemetry::*mhz;
};
constexpr auto clocks = std::to_array<Clock>({
    {"SM clock", &Telemetry::sm_mhz},
    {"highest SM clock", &Telemetry::sm_max_mhz},
    {"memory clock", &Telemetry::memory_mhz},
});

std::string setting_text(std::span<const Report> reports, const Setting& setting) {
  std::set<std::string> values;
  for (const Report& report : reports) values.insert(setting.text(report));
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string clock_text(std::span<const Report> reports, const Clock& clock) {
  std::vector<double> readings;
  for (const Report& report : reports)
    for (const CaseResult& result : report.cases)
      for (const DeviceResult& device : result.per_device)
        if (device.after && (*device.after).*clock.mhz)
          readings.push_back(*((*device.after).*clock.mhz));
  return readings.empty() ? "" : fmt::format("{:.0f} MHz", median(std::move(readings)));
}

}  // namespace

void add_difference(std::vector<Difference>& list, std::string what, std::string base,
                    std::string current) {
  if (base == current) return;
  const auto known = [](std::string& text) {
    return text.empty() ? std::string("unknown") : std::move(text);
  };
  list.push_back({std::move(what), known(base), known(current)});
}

void add_differences(std::vector<Difference>& list, std::span<const Report> base,
                     std::span<const Report> current) {
  for (const Setting& setting : settings)
    add_difference(list, std::string(setting.what), setting_text(base, setting),
                   setting_text(current, setting));
  for (const Clock& clock : clocks)
    add_difference(list, std::string(clock.what), clock_text(base, clock),
                   clock_text(current, clock));
}

}  // namespace mgpu
