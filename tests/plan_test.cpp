// SPDX-License-Identifier: MIT
#include "model/plan.hpp"

#include "sim.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

using namespace mgpu;

namespace {

Machine simulated(int gpus = 2, SimOptions options = {}) {
  options.gpus = gpus;
  return SimBackend(options).machine();
}

Machine host_machine() {
  Machine machine = simulated(2);
  machine.backend = BackendKind::host;
  return machine;
}

PlannedCase planned(const CaseSpec& spec, const Machine& machine, Sampling sampling = {}) {
  Request request;
  request.sampling = sampling;
  request.cases = {spec};
  return make_plan(request, machine).cases.front();
}

CaseSpec spec(std::string_view gpus, std::string_view size) {
  CaseSpec made;
  if (!gpus.empty()) made.gpus = parse_gpus(gpus, "--gpus");
  made.size = parse_size(size, "--size");
  return made;
}

CaseSpec with_home(CaseSpec made, std::string_view home) {
  made.home = parse_place(home, "--home");
  return made;
}

CaseSpec managed(CaseSpec made) {
  made.memory = MemoryKind::managed;
  return made;
}

bool has(const PlannedCase& planned, Mark mark) {
  return std::ranges::find(planned.marks, mark) != planned.marks.end();
}

}  // namespace

TEST_CASE("all visible GPUs copy, one slice each, 1 GiB for each of them, unless told otherwise") {
  const Case what = planned({}, simulated(3)).what;
  CHECK(what.gpus == std::vector{0, 1, 2});
  CHECK(what.split == 3);
  CHECK(what.size == Bytes{3} << 30);
  CHECK(planned({}, host_machine()).what.size == Bytes{2} * 256 << 20);
}

TEST_CASE("a size for each GPU counts the GPUs that copy") {
  CHECK(planned(spec("1", "4GB/gpu"), simulated(3)).what.size == 4'000'000'000);
  CHECK(planned(spec("0,2", "4GB/gpu"), simulated(3)).what.size == 8'000'000'000);
  CHECK_THROWS_AS(planned(spec("0,1", "9223372036854775808/gpu"), simulated(2)), Error);
}

TEST_CASE("the home GPU copies where no other is named") {
  CHECK(planned(with_home(spec("", "1GB"), "1"), simulated(2)).what.gpus == std::vector{1});
  CHECK(planned(with_home(spec("0,1", "1GB"), "1"), simulated(2)).what.gpus == std::vector{0, 1});
}

TEST_CASE("managed slices are prefetched once by default, and never where a place is given") {
  CHECK(planned(managed(spec("0,1", "1GB")), simulated()).what.prefetch == Prefetch::once);
  CHECK(planned(with_home(managed(spec("0,1", "1GB")), "0"), simulated()).what.prefetch ==
        Prefetch::none);
  CHECK(planned(with_home(managed(spec("0,1", "1GB")), "local"), simulated()).what.prefetch ==
        Prefetch::none);
  CHECK(planned(spec("0,1", "1GB"), simulated()).what.prefetch == Prefetch::none);
}

TEST_CASE("managed slices meet on 2 MiB, others on 16 bytes") {
  CHECK(planned(managed(spec("0,1", "1GB")), simulated()).what.align == Bytes{2} << 20);
  CHECK(planned(spec("0,1", "1GB"), simulated()).what.align == 16);
}

TEST_CASE("a prefetch of memory that is not managed is impossible everywhere") {
  CaseSpec prefetched = spec("0", "1GB");
  prefetched.prefetch = Prefetch::array;
  const auto made = planned(prefetched, simulated());
  REQUIRE(made.skip);
  CHECK(made.skip->kind == ErrorKind::usage);
}

TEST_CASE("a GPU that is not a peer of the home cannot run a kernel there") {
  SimOptions apart;
  apart.peers = false;
  const auto made = planned(with_home(spec("1", "1GB"), "0"), simulated(2, apart));
  REQUIRE(made.skip);
  CHECK(made.skip->kind == ErrorKind::unavailable);
  CHECK(made.skip->reason.find("GPU 1 cannot access the memory of GPU 0") != std::string::npos);
  CHECK_FALSE(planned(with_home(spec("1", "1GB"), "0"), simulated(2)).skip);
}

TEST_CASE("the copy engine within one GPU cannot be another GPU's work") {
  CaseSpec wrong = with_home(spec("0,1", "1GB"), "0");
  wrong.engine = Engine::memcpy;
  const auto made = planned(wrong, simulated());
  REQUIRE(made.skip);
  CHECK(made.skip->kind == ErrorKind::usage);
  CHECK_FALSE(planned(wrong, host_machine()).skip);
}

TEST_CASE(
    "a GPU without concurrent managed access drops the default prefetch and refuses an explicit "
    "one") {
  SimOptions old;
  old.concurrent_managed = {true, false};
  const auto dropped = planned(managed(spec("0,1", "1GB")), simulated(2, old));
  CHECK_FALSE(dropped.skip);
  CHECK(dropped.what.prefetch == Prefetch::none);
  CHECK(has(dropped, Mark::prefetch_unsupported));

  CaseSpec explicit_prefetch = managed(spec("0,1", "1GB"));
  explicit_prefetch.prefetch = Prefetch::slice;
  const auto refused = planned(explicit_prefetch, simulated(2, old));
  REQUIRE(refused.skip);
  CHECK(refused.skip->kind == ErrorKind::unavailable);
  CHECK(refused.skip->reason.find("concurrentManagedAccess=0") != std::string::npos);

  Sampling over;
  over.oversubscribe = true;
  CHECK(planned(managed(spec("0,1", "1GB")), simulated(2, old), over).skip);
  CHECK_FALSE(planned(managed(spec("0", "1GB")), simulated(2, old), over).skip);
}

TEST_CASE("a GPU without managed memory refuses it and names the GPU") {
  SimOptions none;
  none.managed = {true, false};
  const auto made = planned(managed(spec("0,1", "1GB")), simulated(2, none));
  REQUIRE(made.skip);
  CHECK(made.skip->kind == ErrorKind::unavailable);
  CHECK(made.skip->reason.find("GPU 1") != std::string::npos);
}

TEST_CASE("a process can use one MIG instance") {
  Machine machine = simulated(2);
  machine.devices[1].mig = true;
  const auto made = planned(spec("0,1", "1GB"), machine);
  REQUIRE(made.skip);
  CHECK(made.skip->kind == ErrorKind::unavailable);
  CHECK_FALSE(planned(spec("1", "1GB"), machine).skip);
}

TEST_CASE("at most 64 lanes run on a device") {
  CaseSpec many = spec("0,1", "1GB");
  many.split = 128;
  CHECK_FALSE(planned(many, simulated()).skip);
  many.split = 129;
  const auto made = planned(many, simulated());
  REQUIRE(made.skip);
  CHECK(made.skip->kind == ErrorKind::usage);
}

TEST_CASE("arrays of at most twice the L2 cache are marked") {
  Machine machine = simulated(1);
  machine.devices[0].l2_bytes = 60'000'000;
  CHECK(has(planned(spec("0", "60000000"), machine), Mark::l2));
  CHECK_FALSE(has(planned(spec("0", "60000016"), machine), Mark::l2));
}

TEST_CASE("an owner wait over arrays that no two slices share is pointed out") {
  CaseSpec owned = spec("0,1", "1GB");
  owned.owner_wait = OwnerWait::host;
  CHECK(planned(owned, simulated()).warnings.size() == 1);
  CHECK(planned(managed(owned), simulated()).warnings.empty());
  CHECK(planned(with_home(owned, "0"), simulated()).warnings.empty());
}

TEST_CASE("threads spin only where the process' CPUs outnumber the lanes") {
  Machine machine = simulated(2);
  machine.host.allowed_cpus = {0, 1, 2};
  CHECK(planned(spec("0,1", "1GB"), machine).what.wait == Wait::spin);
  machine.host.allowed_cpus = {0, 1};
  CHECK(planned(spec("0,1", "1GB"), machine).what.wait == Wait::block);
}

TEST_CASE("the key of a case forgets which GPUs ran it, and nothing else") {
  const Machine machine = simulated(3);
  const Case first = planned(spec("0", "1GB"), machine).what,
             second = planned(spec("2", "1GB"), machine).what;
  CHECK(case_key(first, machine).size() == 16);
  CHECK(case_key(first, machine) == case_key(second, machine));

  const auto differs = [&](auto change) {
    Case changed = first;
    change(changed);
    return case_key(changed, machine) != case_key(first, machine);
  };
  CHECK(differs([](Case& c) { c.size += 1; }));
  CHECK(differs([](Case& c) { c.split = 2; }));
  CHECK(differs([](Case& c) { c.align = 32; }));
  CHECK(differs([](Case& c) { c.engine = Engine::memcpy; }));
  CHECK(differs([](Case& c) { c.access = 4; }));
  CHECK(differs([](Case& c) { c.batch = 2; }));
  CHECK(differs([](Case& c) { c.prefetch = Prefetch::array; }));
  CHECK(differs([](Case& c) { c.owner_wait = OwnerWait::host; }));
  CHECK(differs([](Case& c) { c.owner_lock = OwnerLock::record; }));
  CHECK(differs([](Case& c) { c.threads = Threads::task; }));
  CHECK(differs([](Case& c) { c.from = {Place::Kind::device, 0}; }));
  CHECK(differs([](Case& c) { c.source_memory = MemoryKind::managed; }));

  Machine other = machine;
  other.devices[0].name = "another model";
  CHECK(case_key(first, other) != case_key(first, machine));
}
