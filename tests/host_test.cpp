// SPDX-License-Identifier: MIT
// What the host backend stands on: the kernel's files, groups of CPUs, the loops over bytes; and
// what it alone promises.
#include "backend/backend.hpp"
#include "backend/cpus.hpp"
#include "backend/host_copy.hpp"
#include "backend/host_facts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <unistd.h>
#include <vector>

namespace mgpu {
namespace {

using Cpus = std::vector<int>;
constexpr Bytes kibi = 1024, mebi = 1024 * kibi, gibi = 1024 * mebi;
constexpr Site device0{Site::Kind::device, 0};

ErrorKind kind_thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind;
  }
  FAIL("nothing was thrown");
  return ErrorKind::runtime;
}

std::vector<Cpus> cpus_of(const std::vector<CpuGroup>& groups) {
  std::vector<Cpus> cpus(groups.size());
  std::ranges::transform(groups, cpus.begin(), &CpuGroup::cpus);
  return cpus;
}

/// A folder that is removed with all its files.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("mgpu-host-test-" + std::to_string(getpid()))) {}
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("lists of CPUs are read as the kernel writes them", "[host]") {
  CHECK(parse_cpu_list("0-3,8\n") == Cpus{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("\t7") == Cpus{7});
  CHECK(parse_cpu_list("").empty());
  CHECK(parse_cpu_list("\n").empty());
  CHECK(parse_cpu_list("3-1").empty());
  CHECK(parse_cpu_list("0,x,2") == Cpus{0});
}

TEST_CASE("memory that can be had is what the host has and no cgroup forbids", "[host]") {
  const std::string meminfo = "MemTotal: 32000 kB\nMemFree: 1000 kB\nMemAvailable:   8000 kB\n";
  const auto with = [&](std::vector<CgroupMemory> cgroups) {
    return available_memory(meminfo, cgroups);
  };
  CHECK(with({}) == 8000 * kibi);
  CHECK(with({{"max\n", "5000000\n", ""}}) == 8000 * kibi);
  CHECK(with({{"4000000\n", "1500000\n", ""}}) == 2'500'000);
  SECTION("page cache that is not in use makes way") {
    CHECK(with({{"4000000", "1500000",
                 "anon 900000\ninactive_file 500000\nactive_file 100000\n"}}) == 3'000'000);
  }
  SECTION("version 1 counts what is below it in fields of their own") {
    CHECK(with({{"4000000", "1500000", "inactive_file 1\ntotal_inactive_file 200000\n"}}) ==
          2'700'000);
  }
  SECTION("the narrowest of nested limits decides") {
    CHECK(with({{"max", "10", ""}, {"3000000", "1000000", ""}, {"9000000", "2000000", ""}}) ==
          2'000'000);
  }
  SECTION("a limit that is used up leaves nothing") {
    CHECK(with({{"1000", "5000", ""}}) == 0);
  }
  SECTION("a limit above the host's memory changes nothing") {
    CHECK(with({{"9223372036854771712", "3825664", ""}}) == 8000 * kibi);
  }
  SECTION("a kernel without MemAvailable has what is free") {
    CHECK(available_memory("MemFree: 1000 kB\n", {}) == 1000 * kibi);
  }
}

TEST_CASE("a NUMA node has what is free and what is cached there", "[host]") {
  CHECK(node_memory("Node 1 MemTotal: 9000 kB\nNode 1 MemFree: 500 kB\nNode 1 Active(file): 20 kB\n"
                    "Node 1 Inactive(file): 3 kB\nNode 1 FilePages: 99 kB\n") == 523 * kibi);
}

TEST_CASE("the cgroups that limit memory are found from the innermost one outwards", "[host]") {
  using Folders = std::vector<std::string>;
  const std::string v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
  const std::string v1 =
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n34 31 0:31 / "
      "/sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
  CHECK(memory_cgroups("0::/user.slice/run\n", v2) ==
        Folders{"/sys/fs/cgroup/user.slice/run", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"});
  CHECK(memory_cgroups("0::/\n", v2) == Folders{"/sys/fs/cgroup"});
  CHECK(memory_cgroups("5:cpu:/a\n4:memory:/job\n0::/b\n", v1) ==
        Folders{"/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"});
  SECTION("a container sees its own cgroup mounted as the root") {
    CHECK(memory_cgroups("0::/docker/ab/job\n",
                         "30 23 0:26 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n") ==
          Folders{"/sys/fs/cgroup/job", "/sys/fs/cgroup"});
  }
  SECTION("a path outside the namespace stands for what is mounted") {
    CHECK(memory_cgroups("0::/../../init\n", v2) == Folders{"/sys/fs/cgroup"});
  }
  CHECK(memory_cgroups("", v2).empty());
  CHECK(memory_cgroups("0::/a\n", "").empty());
}

TEST_CASE("the run-queue delay is the second number of schedstat", "[host]") {
  CHECK(parse_schedstat("916332 417 12\n") == 417);
  CHECK_FALSE(parse_schedstat(""));
  CHECK_FALSE(parse_schedstat("5\n"));
}

TEST_CASE("the CPUs near a PCI device are those that this process may use", "[host]") {
  const Folder sys;
  const std::string device = "bus/pci/devices/0000:1a:00.0/";
  const int own = allowed_cpus().front();
  sys.write(device + "local_cpulist", std::to_string(own) + ",100000-100003\n");
  sys.write(device + "numa_node", "2\n");
  for (const char* pci : {"00000000:1A:00.0", "0000:1a:00.0", "1A:00.0"}) {
    CAPTURE(pci);
    const NearCpus near = near_cpus(pci, sys.name());
    CHECK(near.cpus == Cpus{own});
    CHECK(near.numa == 2);
  }
  sys.write(device + "numa_node", "-1\n");
  CHECK_FALSE(near_cpus("0000:1a:00.0", sys.name()).numa);
  const NearCpus unknown = near_cpus("0000:ff:00.0", sys.name());
  CHECK(unknown.cpus.empty());
  CHECK_FALSE(unknown.numa);
}

TEST_CASE("the host is described with what its environment says of the job", "[host]") {
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_NTASKS", "8", 1);
  setenv("SLURM_CONF", "/etc/slurm.conf", 1);
  setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
  const Host host = host_facts();
  const auto environment = cuda_environment();
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_CONF", "CUDA_VISIBLE_DEVICES"})
    unsetenv(name);
  CHECK(host.slurm.at("SLURM_JOB_ID") == "4711");
  CHECK_FALSE(host.slurm.contains("SLURM_CONF"));
  CHECK(host.rank == 3);
  CHECK(host.ranks == 8);
  CHECK(environment.at("CUDA_VISIBLE_DEVICES") == "1,0");
  CHECK(host.cpus >= static_cast<int>(host.allowed_cpus.size()));
  CHECK(host.memory_bytes.value_or(0) > 0);
  CHECK_FALSE(host_facts().rank);
}

TEST_CASE("CPUs are grouped by NUMA node", "[host]") {
  const NumaNode node0{0, {0, 1, 2, 3}, 64 * gibi}, node1{1, {4, 5, 6, 7}, 32 * gibi},
      node2{2, {8}, 16 * gibi};
  const std::vector<NumaNode> one = {node0}, two = {node0, node1}, three = {node0, node1, node2};
  using Groups = std::vector<Cpus>;
  CHECK(cpus_of(make_groups(two, {}, {})) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(cpus_of(make_groups(one, {}, {})) == Groups{{0, 1}, {2, 3}});
  const NumaNode lone{0, {5}, gibi};
  CHECK(cpus_of(make_groups({&lone, 1}, {}, {})) == Groups{{5}});
  CHECK(cpus_of(make_groups(two, {}, 3)) == Groups{{0, 1}, {2, 3}, {4, 5, 6, 7}});
  CHECK(cpus_of(make_groups(one, {}, 3)) == Groups{{0}, {1}, {2, 3}});
  SECTION("fewer groups than nodes span nodes") {
    const auto groups = make_groups(three, {}, 1);
    CHECK(cpus_of(groups) == Groups{{0, 1, 2, 3, 4, 5, 6, 7, 8}});
    CHECK(groups.front().nodes == std::vector<int>{0, 1, 2});
    CHECK(groups.front().memory_bytes == 112 * gibi);
  }
  SECTION("more groups than CPUs share them, and none is without") {
    const auto groups = make_groups(one, {}, 9);
    CHECK(groups.size() == 9);
    for (const CpuGroup& group : groups) CHECK(group.cpus.size() == 1);
    CHECK(groups.back().cpus == Cpus{3});
  }
  SECTION("a group has the caches that its CPUs reach") {
    const std::vector<Cache> caches = {
        {32 * mebi, {0, 1}}, {32 * mebi, {2, 3}}, {16 * mebi, {4, 5, 6, 7}}};
    CHECK(make_groups(two, caches, {}).front().cache_bytes == 64 * mebi);
    CHECK(make_groups(one, caches, {}).front().cache_bytes == 32 * mebi);
  }
  CHECK(kind_thrown([&] { make_groups(one, {}, 0); }) == ErrorKind::usage);
}

TEST_CASE("a machine's nodes and last-level caches are read", "[host]") {
  const Topology topology("numa:2(memory=1073741824) l3:2(size=33554432) core:2 pu:2");
  REQUIRE(topology.nodes().size() == 2);
  CHECK(topology.nodes()[1].number == 1);
  CHECK(topology.nodes()[1].cpus == Cpus{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(topology.nodes()[0].memory_bytes == gibi);
  CHECK(topology.caches().size() == 4);
  CHECK(topology.caches()[0].bytes == 32 * mebi);
  const auto groups = make_groups(topology.nodes(), topology.caches(), {});
  CHECK(groups.size() == 2);
  CHECK(groups[0].cache_bytes == 64 * mebi);
}

TEST_CASE("this machine's nodes hold the allowed CPUs, each once", "[host]") {
  const Topology topology;
  Cpus all;
  for (const NumaNode& node : topology.nodes())
    all.insert(all.end(), node.cpus.begin(), node.cpus.end());
  std::ranges::sort(all);
  CHECK(all == allowed_cpus());
}

TEST_CASE("every copy loop is exact at any size and alignment", "[host]") {
  using Loop = void (*)(std::byte*, const std::byte*, Bytes);
  const auto [name, loop] = GENERATE(
      std::pair<const char*, Loop>{"memcpy", [](std::byte* to, const std::byte* from,
                                                Bytes n) { copy_by_memcpy(to, from, n, false); }},
      std::pair<const char*, Loop>{"streaming", [](std::byte* to, const std::byte* from,
                                                   Bytes n) { copy_by_memcpy(to, from, n, true); }},
      std::pair<const char*, Loop>{"access 4", [](std::byte* to, const std::byte* from,
                                                  Bytes n) { copy_by_access(to, from, n, 4); }},
      std::pair<const char*, Loop>{"access 8", [](std::byte* to, const std::byte* from,
                                                  Bytes n) { copy_by_access(to, from, n, 8); }},
      std::pair<const char*, Loop>{"access 16", [](std::byte* to, const std::byte* from, Bytes n) {
                                     copy_by_access(to, from, n, 16);
                                   }});
  const Bytes to = GENERATE(Bytes{0}, 1, 16, 63), from = GENERATE(Bytes{0}, 3, 32);
  for (const Bytes size :
       {0, 1, 3, 15, 16, 17, 63, 64, 65, 4095, 16'383, 16'384, 16'448, 16'449, 50'021}) {
    CAPTURE(name, to, from, size);
    std::vector<std::byte> source(from + size + 1), destination(to + size + 64, std::byte{0xA5});
    fill_pattern(source.data(), source.size(), {7, false}, 0);
    loop(destination.data() + to, source.data() + from, size);
    REQUIRE(std::equal(source.begin() + static_cast<std::ptrdiff_t>(from), source.end() - 1,
                       destination.begin() + static_cast<std::ptrdiff_t>(to)));
    REQUIRE(std::count(destination.begin(), destination.begin() + static_cast<std::ptrdiff_t>(to),
                       std::byte{0xA5}) == static_cast<std::ptrdiff_t>(to));
    REQUIRE(std::count(destination.end() - 64, destination.end(), std::byte{0xA5}) == 64);
  }
}

TEST_CASE("a fill writes the pattern byte by byte", "[host]") {
  const Pattern pattern =
      GENERATE(Pattern{0, false}, Pattern{5, true}, Pattern{(1u << 20) - 1, false});
  const Bytes base = GENERATE(Bytes{0}, 1, 7, (Bytes{1} << 40) + 5);
  for (const Bytes size : {1, 7, 8, 9, 300}) {
    CAPTURE(pattern.key, pattern.inverted, base, size);
    std::vector<std::byte> data(size);
    fill_pattern(data.data(), size, pattern, base);
    for (Bytes i = 0; i < size; ++i)
      REQUIRE(data[i] == static_cast<std::byte>(pattern_byte(pattern, base + i)));
  }
}

TEST_CASE("the host has as many devices as are asked for", "[host]") {
  const int count = GENERATE(1, 2, 5);
  const Machine machine = make_host_backend(count)->machine();
  CHECK(machine.backend == BackendKind::host);
  REQUIRE(machine.devices.size() == static_cast<std::size_t>(count));
  for (const Device& device : machine.devices) {
    CHECK_FALSE(device.cpus.empty());
    CHECK(std::ranges::includes(allowed_cpus(), device.cpus));
    CHECK(device.name.find("of NUMA node") != std::string::npos);
    CHECK(device.uuid.empty());
    CHECK(device.pci.empty());
    CHECK_FALSE(device.memory_peak);
  }
}

TEST_CASE("devices of one node share its memory, so each is told all of it", "[host]") {
  const auto backend = make_host_backend(2);
  const Bytes one = backend->free_memory(device0), all = backend->free_memory(whole_host);
  if (make_groups(Topology().nodes(), {}, {}).front().nodes.size() == 1 &&
      Topology().nodes().size() == 1)
    CHECK(one > all / 2);
  CHECK(one <= backend->machine().host.memory_bytes.value_or(0));
}

TEST_CASE("what the host backend cannot do is refused with a reason", "[host]") {
  const auto backend = make_host_backend(1);
  CHECK(kind_thrown([&] { backend->open_worker(0); }) == ErrorKind::runtime);
  CHECK(kind_thrown([&] { backend->open(std::vector<int>{3}, Wait::block, Affinity::near); }) ==
        ErrorKind::unavailable);
  CHECK(kind_thrown([&] {
          backend->free_memory({Site::Kind::device, -2});
        }) == ErrorKind::unavailable);
  backend->open(std::vector<int>{0}, Wait::spin, Affinity::near);
  const auto buffer = backend->allocate({MemoryKind::managed, device0, 100});
  const auto worker = backend->open_worker(0);
  worker->advise({buffer.get(), 0, 100}, Advice::none, device0);
  CHECK(kind_thrown([&] {
          worker->advise({buffer.get(), 0, 100}, Advice::preferred, device0);
        }) == ErrorKind::unavailable);
  CHECK(kind_thrown([&] {
          backend->fill(device0, {buffer.get(), 50, 51}, {}, 0);
        }) == ErrorKind::runtime);
  CHECK(kind_thrown([&] { make_host_backend(0)->machine(); }) == ErrorKind::usage);
}

TEST_CASE("a worker that is closed finishes what it was given", "[host]") {
  const auto backend = make_host_backend(1);
  backend->open(std::vector<int>{0}, Wait::block, Affinity::near);
  constexpr Bytes size = 16 * mebi;
  const auto source = backend->allocate({MemoryKind::device, device0, size}),
             destination = backend->allocate({MemoryKind::device, device0, size});
  backend->fill(device0, {source.get(), 0, size}, {1, false}, 0);
  backend->open_worker(0)->copy({destination.get(), 0, size}, {source.get(), 0, size},
                                Engine::memcpy, 16);
  CHECK(backend->check(device0, {destination.get(), 0, size}, {1, false}, 0).bad == 0);
}

TEST_CASE("a stream keeps more marks than it had room for", "[host]") {
  const auto backend = make_host_backend(1);
  backend->open(std::vector<int>{0}, Wait::block, Affinity::near);
  const auto worker = backend->open_worker(0);
  worker->begin(backend->now());
  for (int i = 0; i < 1000; ++i) REQUIRE(worker->mark() == i);
  worker->sync();
  for (int i = 1; i < 1000; ++i) REQUIRE(worker->at(i) >= worker->at(i - 1));
}

}  // namespace mgpu
