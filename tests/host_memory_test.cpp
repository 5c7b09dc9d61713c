// SPDX-License-Identifier: MIT
// Memory of the host and the threads that touch it: where they are, and what binds them there.
#include "backend/host_memory.hpp"

#include "backend/backend.hpp"
#include "backend/cpus.hpp"
#include "backend/helpers.hpp"
#include "backend/host_device.hpp"
#include "backend/host_facts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <linux/capability.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace mgpu {
namespace {

using Cpus = std::vector<int>;
constexpr Bytes mebi = Bytes{1} << 20, gibi = Bytes{1} << 30;
constexpr Site device0{Site::Kind::device, 0}, near0{Site::Kind::near, 0};

ErrorKind kind_thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind;
  }
  FAIL("nothing was thrown");
  return ErrorKind::runtime;
}

/// Those that the calling thread is bound to.
Cpus usable_cpus() {
  constexpr std::string_view key = "Cpus_allowed_list:";
  std::ifstream status("/proc/thread-self/status");
  std::string line;
  while (std::getline(status, line) && !line.starts_with(key)) {
  }
  return parse_cpu_list(std::string_view(line).substr(key.size()));
}

}  // namespace

TEST_CASE("large memory lies on 2 MiB, and all of it is zero", "[host]") {
  const Bytes bytes = GENERATE(Bytes{1}, 4096, 2 * mebi - 1, 2 * mebi, 2 * mebi + 1, 9 * mebi + 5);
  CAPTURE(bytes);
  for (int i = 0; i < 3; ++i) {
    const Pages pages(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(pages.data()) % (bytes >= 2 * mebi ? 2 * mebi : 256) ==
          0);
    CHECK(pages.size() >= bytes);
    CHECK(std::all_of(pages.data(), pages.data() + pages.size(),
                      [](std::byte b) { return b == std::byte{0}; }));
  }
  CHECK(kind_thrown([] { Pages(Bytes{1} << 50); }) == ErrorKind::memory);
  CHECK(kind_thrown([] { Pages(~Bytes{0}); }) == ErrorKind::memory);
}

TEST_CASE("helpers do every block of all jobs once", "[host]") {
  const Cpus cpus(3, allowed_cpus().front());
  Helpers helpers(cpus, GENERATE(Affinity::near, Affinity::none));
  const auto seat = GENERATE(std::optional<std::size_t>(), 1u);
  constexpr Bytes bytes = mebi + 17;
  std::vector<std::vector<unsigned char>> touched(4, std::vector<unsigned char>(bytes));
  {
    std::vector<std::jthread> callers;
    callers.reserve(touched.size());
    for (auto& mine : touched)
      callers.emplace_back([&helpers, &mine, seat] {
        for (int round = 0; round < 5; ++round)
          helpers.run(bytes, seat, [&mine](Bytes offset, Bytes count) {
            for (Bytes i = offset; i < offset + count; ++i) ++mine[i];
          });
      });
  }
  for (const auto& mine : touched)
    CHECK(std::ranges::count(mine, 5) == static_cast<std::ptrdiff_t>(bytes));
  helpers.run(0, seat, [](Bytes, Bytes) {});
}

TEST_CASE("helpers keep to their CPUs, or go where they like", "[host]") {
  const auto affinity = GENERATE(Affinity::near, Affinity::none);
  const int cpu = allowed_cpus().back();
  Helpers helpers({&cpu, 1}, affinity);
  Cpus seen;
  helpers.run(1, std::nullopt, [&](Bytes, Bytes) { seen = usable_cpus(); });
  CHECK(seen == (affinity == Affinity::near ? Cpus{cpu} : allowed_cpus()));
}

TEST_CASE("a site's NUMA node is that of its device, or the one that it names", "[host]") {
  Machine machine;
  machine.host.nodes = {{0, {}, gibi}, {1, {}, gibi}};
  machine.devices.resize(3);
  machine.devices[0].numa = 1;
  machine.devices[1].numa = 7;  // no node of this machine
  HostMemory memory;
  const auto near = [](int device) { return Site{Site::Kind::near, device}; };
  const auto node = [](int number) { return Site{Site::Kind::node, number}; };
  memory.open(machine, Affinity::near);
  CHECK(memory.node(near0) == 1);
  CHECK(memory.node(device0) == 1);
  CHECK(memory.node(node(0)) == 0);
  for (const Site& site : {near(1), near(2), near(3), near(-1), node(2), whole_host})
    CHECK_FALSE(memory.node(site));
  SECTION("the only node is as good as none") {
    machine.host.nodes.pop_back();
    memory.open(machine, Affinity::near);
    CHECK_FALSE(memory.node(node(0)));
  }
  SECTION("threads on a node without CPUs are on all that are allowed") {
    CHECK(memory.helpers(near0).count() == allowed_cpus().size());
  }
  SECTION("threads of a node are on its CPUs, and kept") {
    machine.host.nodes[1].cpus = {allowed_cpus().front()};
    memory.open(machine, Affinity::near);
    Helpers& helpers = memory.helpers(near0);
    CHECK(helpers.count() == 1);
    CHECK(&memory.helpers(node(1)) == &helpers);
    memory.open(machine, Affinity::none);
    CHECK(memory.helpers(near0).count() == allowed_cpus().size());
  }
}

TEST_CASE("memory of the host is there when it is given, managed memory once it is touched",
          "[host]") {
  const auto backend = make_host_backend(1);
  backend->open(std::vector<int>{0}, Wait::block, Affinity::near);
  const auto [kind, resident] =
      GENERATE(std::pair{MemoryKind::pageable, true}, std::pair{MemoryKind::managed, false});
  constexpr Bytes size = 6 * mebi;
  const auto buffer = backend->allocate({kind, near0, size});
  std::vector<unsigned char> pages(size / 4096);
  REQUIRE(mincore(HostBuffer::data({buffer.get(), 0, size}), size, pages.data()) == 0);
  CHECK(std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }) ==
        (resident ? static_cast<std::ptrdiff_t>(pages.size()) : 0));
}

TEST_CASE("memory that may not be locked is refused, and the limit named", "[host]") {
  const auto backend = make_host_backend(1);
  backend->open(std::vector<int>{0}, Wait::block, Affinity::near);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const rlimit lower{std::min<rlim_t>(mebi, before.rlim_max), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_MEMLOCK, &lower) == 0);
  std::string message;
  std::optional<ErrorKind> kind;
  bool limited = false;
  // Capabilities are of a thread: the others keep theirs, by which no limit holds for root.
  std::jthread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    syscall(SYS_capset, &header, none.data());
    const Pages probe(2 * mebi);
    limited = mlock(probe.data(), probe.size()) != 0;
    try {
      backend->allocate({MemoryKind::pinned, near0, 2 * mebi});
    } catch (const Error& error) {
      kind = error.kind;
      message = error.what();
    }
  }).join();
  setrlimit(RLIMIT_MEMLOCK, &before);
  if (!limited) SKIP("nothing is locked in this build: the sanitizers leave mlock out");
  CHECK(kind == ErrorKind::unavailable);
  CHECK(message.find("ulimit -l") != std::string::npos);
}

TEST_CASE("a lane's thread is bound to its device, the main thread never", "[host]") {
  const auto backend = make_host_backend(2);
  const auto open = [&](Affinity affinity) {
    backend->open(std::vector<int>{0, 1}, Wait::block, affinity);
  };
  open(Affinity::near);
  const auto worker = backend->open_worker(0), other = backend->open_worker(1);
  const auto devices = backend->machine().devices;
  std::vector<Cpus> of_thread;
  const auto begin = [&](Worker& begun) {
    begun.begin(backend->now());
    of_thread.push_back(usable_cpus());
  };
  std::jthread([&] {
    bind_thread(Cpus{allowed_cpus().back()});
    for (Worker* begun : {worker.get(), other.get(), worker.get()}) begin(*begun);
    open(Affinity::none);
    begin(*worker);
  }).join();
  CHECK(of_thread ==
        std::vector<Cpus>{devices[0].cpus, devices[1].cpus, devices[0].cpus, allowed_cpus()});
  open(Affinity::near);
  of_thread.clear();
  begin(*worker);
  CHECK(of_thread.front() == allowed_cpus());
}

}  // namespace mgpu
