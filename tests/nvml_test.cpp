// SPDX-License-Identifier: MIT
#include "backend/nvml.hpp"

#include <catch2/catch_test_macros.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mgpu {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("reasons that hold clocks down have words; idle and display are none") {
  CHECK(event_reason_words(0).empty());
  CHECK(event_reason_words(0x101).empty());
  CHECK(event_reason_words(0xFE) == Words{"applications-clocks", "sw-power-cap", "hw-slowdown",
                                          "sync-boost", "sw-thermal", "hw-thermal",
                                          "hw-power-brake"});
  CHECK(event_reason_words(0x8000000000000004ULL) == Words{"sw-power-cap"});
}

TEST_CASE("other processes are counted once each, and only where this process is seen") {
  const auto others = [](const std::vector<unsigned>& pids) {
    return other_processes(pids, [](unsigned pid) { return pid == 10 || pid == 11; });
  };
  CHECK(others({10}) == 0);
  CHECK(others({10, 11}) == 0);
  CHECK(others({7, 10, 8, 7}) == 2);
  CHECK(others({7, 8}) == std::nullopt);
  CHECK(others({}) == std::nullopt);
}

TEST_CASE("without NVML a GPU's state is not known") {
  const Nvml nvml("libmgpu-has-no-such-library.so.1");
  CHECK_FALSE(nvml.telemetry("GPU-9a1e0000-0000-0000-0000-000000000000"));
}

}  // namespace
}  // namespace mgpu
