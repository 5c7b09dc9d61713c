// SPDX-License-Identifier: MIT
#include "backend/cupti.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstring>
#include <fnmatch.h>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mgpu {
namespace {

constexpr std::uint32_t host = 0xFFFFFFFF;
constexpr std::uint32_t user = 1, coherence = 2;

CuptiRecord record(std::uint32_t counter, std::uint64_t value, std::uint32_t source = host,
                   std::uint32_t destination = host, std::uint32_t flags = 0) {
  CuptiRecord made;
  made.kind = cupti_unified_memory;
  made.counter = counter;
  made.value = value;
  made.source = source;
  made.destination = destination;
  made.flags = flags;
  return made;
}

Counters counted(const std::vector<CuptiRecord>& records) {
  Counters counters;
  for (const auto& each : records) add_record(counters, each);
  return counters;
}

/// A CUPTI that hands out the records it was given: calls through pointers, so its state is global.
struct FakeCupti {
  std::size_t record_bytes = sizeof(CuptiRecord);
  std::vector<CuptiRecord> records;
  std::vector<std::string> log;
  std::string failing;  ///< the call that fails with 35
  std::size_t dropped = 0;
  CuptiBufferRequest request = nullptr;
  CuptiBufferComplete complete = nullptr;
};
FakeCupti fake;

int logged(const char* call) {
  fake.log.emplace_back(call);
  return fake.failing == call ? 35 : 0;
}

int deliver(std::uint32_t) {
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0, max_records = 1;
  fake.request(&buffer, &bytes, &max_records);
  std::size_t used = 0;
  for (const auto& each : std::exchange(fake.records, {})) {
    std::memcpy(buffer + used, &each, sizeof each);
    std::memset(buffer + used + sizeof each, 0xAB, fake.record_bytes - sizeof each);
    used += fake.record_bytes;
  }
  fake.complete(nullptr, 0, buffer, bytes, used);
  return logged("flush");
}

int walk(std::uint8_t* buffer, std::size_t valid, void** next) {
  constexpr int max_limit_reached = 12;
  auto* const end = buffer + valid;
  auto* const here =
      *next == nullptr ? buffer : static_cast<std::uint8_t*>(*next) + fake.record_bytes;
  if (here >= end) return max_limit_reached;
  *next = here;
  return 0;
}

CuptiCalls fake_calls() {
  CuptiCalls calls;
  calls.register_callbacks = [](CuptiBufferRequest request, CuptiBufferComplete complete) {
    fake.request = request;
    fake.complete = complete;
    return logged("register");
  };
  calls.configure = [](CuptiConfig*, std::uint32_t) { return logged("configure"); };
  calls.enable = [](int) { return logged("enable"); };
  calls.disable = [](int) { return logged("disable"); };
  calls.flush_all = deliver;
  calls.next_record = walk;
  calls.dropped_records = [](void*, std::uint32_t, std::size_t* dropped) {
    *dropped = fake.dropped;
    return 0;
  };
  calls.result_string = [](int result, const char** text) {
    if (result == 15) *text = "CUPTI_ERROR_NOT_INITIALIZED";
    return result == 15 ? 0 : 1;
  };
  return calls;
}

void work() {
  fake.log.emplace_back("work");
}

using Log = std::vector<std::string>;

std::vector<std::string> listed(std::string_view home, const std::vector<std::string>& files) {
  return cupti_libraries(home, [&](const std::string& pattern) {
    std::vector<std::string> found;
    std::ranges::copy_if(files, std::back_inserter(found), [&](const std::string& file) {
      return fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME) == 0;
    });
    return found;
  });
}

TEST_CASE("bytes that moved are counted by direction, pair and cause") {
  const auto counters =
      counted({record(8, 4096, 1, 0, user), record(8, 100, 0, 1, coherence),
               record(8, 4096, 1, 0, user), record(1, 512, host, 1), record(2, 64, 0, host)});
  CHECK(counters.d2d_bytes == 8292);
  CHECK(counters.h2d_bytes == 512);
  CHECK(counters.d2h_bytes == 64);
  CHECK(counters.d2d_by_cause.user == 8192);
  CHECK(counters.d2d_by_cause.coherence == 100);
  CHECK(counters.d2d_by_cause.prefetch == 0);
  std::vector<std::pair<int, int>> pairs;
  for (const auto& pair : counters.pairs) pairs.emplace_back(pair.from, pair.to);
  CHECK(pairs == std::vector<std::pair<int, int>>{{-1, 1}, {0, -1}, {0, 1}, {1, 0}});
  CHECK(counters.pairs[3].bytes == 8192);
}

TEST_CASE("each migration cause of CUPTI has its sum and an unknown one has none") {
  const auto causes = [](std::uint32_t flags) {
    const auto by = counted({record(8, 7, 0, 1, flags)}).d2d_by_cause;
    return std::vector{by.user, by.coherence, by.prefetch, by.eviction, by.access_counter};
  };
  CHECK(causes(0) == std::vector<double>{0, 0, 0, 0, 0});
  CHECK(causes(1) == std::vector<double>{7, 0, 0, 0, 0});
  CHECK(causes(2) == std::vector<double>{0, 7, 0, 0, 0});
  CHECK(causes(3) == std::vector<double>{0, 0, 7, 0, 0});
  CHECK(causes(4) == std::vector<double>{0, 0, 0, 7, 0});
  CHECK(causes(5) == std::vector<double>{0, 0, 0, 0, 7});
  CHECK(causes(6) == std::vector<double>{0, 0, 0, 0, 0});
}

TEST_CASE("faults, thrashing, throttling and remote maps are counted each in its unit") {
  auto throttled = record(6, 12345, 0);
  throttled.start_ns = 1000;
  throttled.end_ns = 1700;
  auto on_the_host = throttled;
  on_the_host.flags = 1;
  const auto counters = counted({record(4, 3, 0), record(4, 2, 1), record(5, 65536), throttled,
                                 on_the_host, record(7, 4096, 0, 1)});
  CHECK(counters.fault_groups == 5);
  CHECK(counters.thrashing == 65536);
  CHECK(counters.throttling_ns == 700);
  CHECK(counters.remote_map_bytes == 4096);
  CHECK(counters.pairs.empty());
}

TEST_CASE("records of host faults, of new counters and of other kinds count nothing") {
  auto foreign = record(8, 4096, 0, 1, user);
  foreign.kind = 1;
  const auto counters = counted({record(3, 0x7f0000001000), record(9, 4096, 0, 1), foreign});
  CHECK(counters.fault_groups == 0);
  CHECK(counters.d2d_bytes == 0);
  CHECK(counters.pairs.empty());
}

TEST_CASE("records of either length are counted once, while the work runs and no longer") {
  const std::size_t bytes = GENERATE(std::size_t{64}, std::size_t{104});
  fake = {};
  fake.record_bytes = bytes;
  const auto moving = [] {
    work();
    fake.records = {record(8, 4096, 0, 1, user), record(8, 4096, 0, 1, user), record(4, 1, 1)};
  };
  const auto result = MigrationCounter(fake_calls).count(moving);
  CHECK(fake.log == Log{"register", "configure", "enable", "work", "flush", "disable", "flush"});
  REQUIRE(std::holds_alternative<Counters>(result));
  CHECK(std::get<Counters>(result).d2d_bytes == 8192);
  CHECK(std::get<Counters>(result).fault_groups == 1);

  fake.records = {record(8, 1, 0, 1)};
  deliver(0);  // a late one, which must not be in the next count
  const auto again = MigrationCounter(fake_calls).count(work);
  CHECK(std::get<Counters>(again).d2d_bytes == 0);
}

TEST_CASE("CUPTI is told what to count before it counts, and for all counts once") {
  fake = {};
  MigrationCounter counter(fake_calls);
  CHECK(fake.log == Log{"register", "configure"});
  counter.count(work);
  counter.count(work);
  CHECK(std::ranges::count(fake.log, "configure") == 1);
  CHECK(std::ranges::count(fake.log, "enable") == 2);
}

TEST_CASE("work is done once and uncounted where CUPTI refuses") {
  fake = {};
  fake.failing = GENERATE("register", "configure", "enable");
  CAPTURE(fake.failing);
  const auto result = MigrationCounter(fake_calls).count(work);
  CHECK(std::ranges::count(fake.log, "work") == 1);
  CHECK(std::get<std::string>(result) == "CUPTI: insufficient privileges (35)");
}

TEST_CASE("work is done once and uncounted where there is no CUPTI") {
  fake = {};
  const auto result =
      MigrationCounter([] { return load_cupti({"libmgpu-has-no-such-library.so.1"}); }).count(work);
  CHECK(fake.log == Log{"work"});
  CHECK(std::get<std::string>(result).starts_with(
      "CUPTI: libmgpu-has-no-such-library.so.1 cannot be loaded: cannot open shared object"));
}

TEST_CASE("a count that cannot be had or lacks records is not given") {
  fake = {};
  fake.failing = "flush";
  CHECK(std::get<std::string>(MigrationCounter(fake_calls).count(work)) ==
        "CUPTI: insufficient privileges (35)");
  CHECK(std::ranges::count(fake.log, "disable") == 1);
  fake = {};
  fake.dropped = 12;
  CHECK(std::get<std::string>(MigrationCounter(fake_calls).count(work)) ==
        "CUPTI: 12 records were lost");
  CHECK(std::ranges::count(fake.log, "work") == 1);
}

TEST_CASE("what the work throws goes on once the counting is switched off") {
  fake = {};
  const auto failing = [] {
    work();
    throw std::runtime_error("the work's own");
  };
  CHECK_THROWS_AS(MigrationCounter(fake_calls).count(failing), std::runtime_error);
  CHECK(fake.log == Log{"register", "configure", "enable", "work", "disable", "flush"});
}

TEST_CASE("what is found instead of CUPTI is told") {
  const auto failure = [](const std::vector<std::string>& libraries) {
    try {
      load_cupti(libraries);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  CHECK(failure({"libc.so.6"}) == "the library has no cuptiActivityRegisterCallbacks");
  CHECK(failure({"libmgpu-a.so", "libmgpu-b.so"}).starts_with("libmgpu-a.so cannot be loaded: "));
  // A file that is there and no library tells more than a name that is nowhere.
  CHECK(failure({"libmgpu-a.so", "/proc/self/status", "/proc/self/maps"})
            .starts_with("/proc/self/status cannot be loaded: "));
}

TEST_CASE("results of CUPTI are told in words of ours or by its own name, with the number") {
  const auto calls = fake_calls();
  CHECK(cupti_result(35, calls) == "insufficient privileges (35)");
  CHECK(cupti_result(31, calls).find("MPS") != std::string::npos);
  CHECK(cupti_result(30, calls).find("peer access") != std::string::npos);
  CHECK(cupti_result(29, calls) != cupti_result(28, calls));
  CHECK(cupti_result(15, calls) == "CUPTI_ERROR_NOT_INITIALIZED (15)");
  CHECK(cupti_result(12345, calls) == "unknown error (12345)");
}

TEST_CASE("CUPTI is looked for by name, in CUDA_HOME, in the default toolkit, in the newest") {
  const std::vector<std::string> files = {
      "/opt/cuda/lib64/libcupti.so.12",
      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
      "/usr/local/cuda/targets/sbsa-linux/lib/libcupti.so.13",
      "/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12",
      "/usr/local/cuda-13.0/lib64/libcupti.so.13",
      "/usr/local/cuda-13.1/lib64/libcupti.so.13",
  };
  const Log without_home = {"libcupti.so.13",
                            "libcupti.so.12",
                            "/usr/local/cuda/targets/sbsa-linux/lib/libcupti.so.13",
                            "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
                            "/usr/local/cuda-13.1/lib64/libcupti.so.13",
                            "/usr/local/cuda-13.0/lib64/libcupti.so.13",
                            "/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12"};
  CHECK(listed("", files) == without_home);
  Log with_home = without_home;
  with_home.insert(with_home.begin() + 2, "/opt/cuda/lib64/libcupti.so.12");
  CHECK(listed("/opt/cuda", files) == with_home);
  CHECK(listed("", {}) == Log{"libcupti.so.13", "libcupti.so.12"});
}

}  // namespace
}  // namespace mgpu
