// SPDX-License-Identifier: MIT
#include "backend/nvml.hpp"

#include "backend/nvml_calls.hpp"
#include "model/units.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

namespace mgpu {
namespace {

constexpr int nvml_insufficient_size = 7;
constexpr unsigned long long nvml_not_available = ~0ULL;
constexpr int nvml_sm_clock = 1, nvml_memory_clock = 2;

std::optional<double> as_watts(std::optional<unsigned> milliwatts) {
  if (!milliwatts) return std::nullopt;
  return *milliwatts / 1000.0;
}

/// Drivers that translate into a container's numbers give the thread that made the context.
bool is_own_thread(unsigned id) {
  std::error_code ignored;
  return std::filesystem::exists("/proc/self/task/" + std::to_string(id), ignored);
}

/// "NVRM version: NVIDIA UNIX ... x86_64  580.159.04  Release Build ...": the first word of digits
/// and points.
std::string kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return {};
}

}  // namespace

// All return nvmlReturn_t, 0 for success.
struct Nvml::Functions {
  explicit Functions(const char* name) : library(name) {}

  NvmlLibrary library;
  int (*init)() = library.find<int()>("nvmlInit_v2");
  int (*shutdown)() = library.find<int()>("nvmlShutdown");
  const char* (*error_string)(int) = library.find<const char*(int)>("nvmlErrorString");
  int (*driver_version)(char*, unsigned) =
      library.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  int (*by_uuid)(const char*, NvmlDevice**) =
      library.find<int(const char*, NvmlDevice**)>("nvmlDeviceGetHandleByUUID");
  int (*mig_mode)(NvmlDevice*, unsigned*, unsigned*) =
      library.find<int(NvmlDevice*, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");

  // Of telemetry: null where a library is too old, or too new, to have it.
  using Number = int(NvmlDevice*, unsigned*);
  using NumberOf = int(NvmlDevice*, int kind, unsigned*);
  using Reasons = int(NvmlDevice*, unsigned long long*);
  using Temperature = int(NvmlDevice*, NvmlTemperature*);
  using Processes = int(NvmlDevice*, unsigned* count, NvmlProcess*);
  NumberOf* clock = library.seek<NumberOf>("nvmlDeviceGetClockInfo");
  NumberOf* max_clock = library.seek<NumberOf>("nvmlDeviceGetMaxClockInfo");
  Number* power = library.seek<Number>("nvmlDeviceGetPowerUsage");
  Number* power_limit = library.seek<Number>("nvmlDeviceGetEnforcedPowerLimit");
  Temperature* temperature = library.seek<Temperature>("nvmlDeviceGetTemperatureV");
  NumberOf* old_temperature = library.seek<NumberOf>("nvmlDeviceGetTemperature");
  Reasons* event_reasons = library.seek<Reasons>("nvmlDeviceGetCurrentClocksEventReasons");
  Reasons* throttle_reasons = library.seek<Reasons>("nvmlDeviceGetCurrentClocksThrottleReasons");
  Processes* processes = library.seek<Processes>("nvmlDeviceGetComputeRunningProcesses_v3");

  std::optional<int> celsius(NvmlDevice* device) const {
    NvmlTemperature reading;
    if (temperature != nullptr && temperature(device, &reading) == 0) return reading.celsius;
    return as_int(ask<unsigned>(old_temperature, device, 0));
  }

  unsigned long long reasons(NvmlDevice* device) const {
    auto bits = ask<unsigned long long>(event_reasons, device);
    if (!bits) bits = ask<unsigned long long>(throttle_reasons, device);
    return bits.value_or(0);
  }

  std::optional<std::vector<NvmlProcess>> running(NvmlDevice* device) const {
    if (processes == nullptr) return std::nullopt;
    std::vector<NvmlProcess> found(16);
    int status = nvml_insufficient_size;
    // Others may come between two calls, so what did not suffice is asked with room to spare.
    for (int tries = 0; status == nvml_insufficient_size && tries < 3; ++tries) {
      auto count = static_cast<unsigned>(found.size());
      status = processes(device, &count, found.data());
      found.resize(status == 0 ? count : count + 16);
    }
    if (status != 0) return std::nullopt;
    return found;
  }

  std::optional<int> others(NvmlDevice* device, bool present) const {
    const auto found = running(device);
    if (!found) return std::nullopt;
    std::vector<unsigned> pids;
    for (const auto& process : *found) pids.push_back(process.pid);
    if (!present) return static_cast<int>(std::set(pids.begin(), pids.end()).size());
    return other_processes(pids, is_own_thread);
  }
};

Nvml::Nvml(const char* library) {
  try {
    auto functions = std::make_unique<Functions>(library);
    if (const int status = functions->init(); status != 0)
      throw std::runtime_error(functions->error_string(status));
    functions_ = std::move(functions);
    state_ = "available";
  } catch (const std::runtime_error& error) {
    state_ = std::string("unavailable: ") + error.what();
  }
}

Nvml::~Nvml() {
  if (functions_) functions_->shutdown();
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (functions_ && functions_->driver_version(text.data(), text.size()) == 0) return text.data();
  return kernel_module_version();
}

Nvml::Identity Nvml::identify(const std::string& uuid) const {
  NvmlDevice* device = nullptr;
  if (functions_ && functions_->by_uuid(("GPU-" + uuid).c_str(), &device) == 0) {
    // Where MIG is on, CUDA has nothing but instances, whichever of the two UUIDs it gives.
    unsigned current = 0, pending = 0;
    const bool known = functions_->mig_mode(device, &current, &pending) == 0;
    return {"GPU-" + uuid, known && current == 1};
  }
  if (functions_ && functions_->by_uuid(("MIG-" + uuid).c_str(), &device) == 0)
    return {"MIG-" + uuid, true};
  return {"GPU-" + uuid, false};
}

std::optional<Telemetry> Nvml::telemetry(const std::string& uuid, bool present) const {
  NvmlDevice* device = nullptr;
  if (!functions_ || functions_->by_uuid(uuid.c_str(), &device) != 0) return std::nullopt;
  const auto& of = *functions_;
  Telemetry now;
  now.sm_mhz = as_int(ask<unsigned>(of.clock, device, nvml_sm_clock));
  now.sm_max_mhz = as_int(ask<unsigned>(of.max_clock, device, nvml_sm_clock));
  now.memory_mhz = as_int(ask<unsigned>(of.clock, device, nvml_memory_clock));
  now.memory_max_mhz = as_int(ask<unsigned>(of.max_clock, device, nvml_memory_clock));
  now.power_w = as_watts(ask<unsigned>(of.power, device));
  now.power_limit_w = as_watts(ask<unsigned>(of.power_limit, device));
  now.temperature_c = of.celsius(device);
  now.event_reasons = event_reason_words(of.reasons(device));
  now.other_processes = of.others(device, present);
  return now;
}

std::vector<MemoryHolder> Nvml::memory_holders(const std::string& uuid) const {
  NvmlDevice* device = nullptr;
  if (!functions_ || functions_->by_uuid(uuid.c_str(), &device) != 0) return {};
  std::map<unsigned, std::optional<Bytes>> held;
  for (const NvmlProcess& process :
       functions_->running(device).value_or(std::vector<NvmlProcess>())) {
    auto& bytes = held[process.pid];
    if (process.used_bytes != nvml_not_available)
      bytes = checked_add(bytes.value_or(0), process.used_bytes).value_or(~Bytes{0});
  }
  std::vector<MemoryHolder> holders;
  for (const auto& [pid, bytes] : held)
    if (!is_own_thread(pid)) holders.push_back({pid, bytes});
  std::ranges::stable_sort(holders, std::greater(), &MemoryHolder::bytes);
  return holders;
}

NvmlTopology Nvml::topology(std::span<const std::string> uuids) const {
  if (!functions_) return {};
  std::vector<NvmlDevice*> devices;
  for (const std::string& uuid : uuids) {
    NvmlDevice* device = nullptr;
    if (functions_->by_uuid(uuid.c_str(), &device) != 0) device = nullptr;
    devices.push_back(device);
  }
  return ask_topology(functions_->library, devices);
}

std::vector<std::string> event_reason_words(unsigned long long bits) {
  constexpr std::array words = {
      "",           "applications-clocks", "sw-power-cap", "hw-slowdown",
      "sync-boost", "sw-thermal",          "hw-thermal",   "hw-power-brake"};
  std::vector<std::string> said;
  for (std::size_t i = 1; i < words.size(); ++i)
    if ((bits >> i & 1) != 0) said.emplace_back(words[i]);
  return said;
}

std::optional<int> other_processes(std::span<const unsigned> pids,
                                   const std::function<bool(unsigned pid)>& ours) {
  const std::set<unsigned> distinct(pids.begin(), pids.end());
  const auto own = std::ranges::count_if(distinct, ours);
  if (own == 0) return std::nullopt;
  return static_cast<int>(distinct.size()) - static_cast<int>(own);
}

}  // namespace mgpu
