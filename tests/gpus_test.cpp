// SPDX-License-Identifier: MIT
#include "model/gpus.hpp"

#include "model/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace mgpu;

namespace {

using Kind = GpuSelector::Kind;

Machine cuda_machine() {
  Machine machine;
  machine.devices.resize(3);
  const std::vector<std::string> uuids{"GPU-9a1e0000-1111", "GPU-9a1f0000-2222",
                                       "GPU-77000000-3333"};
  const std::vector<std::string> addresses{"00000000:17:00.0", "00000000:3B:00.0",
                                           "00000001:17:00.0"};
  for (std::size_t i = 0; i < 3; ++i) {
    machine.devices[i].ordinal = static_cast<int>(i);
    machine.devices[i].name = "NVIDIA H200";
    machine.devices[i].uuid = uuids[i];
    machine.devices[i].pci = addresses[i];
  }
  return machine;
}

Machine host_machine() {
  Machine machine;
  machine.backend = BackendKind::host;
  machine.devices.resize(2);
  machine.devices[1].ordinal = 1;
  machine.devices[0].name = machine.devices[1].name = "1 CPU of NUMA node 0";
  return machine;
}

std::vector<int> resolve(std::string_view text, const Machine& machine) {
  return resolve_gpus(parse_gpus(text, "--gpus"), machine, "--gpus");
}

template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::runtime, "nothing was thrown");
}

bool contains(const Error& error, std::string_view text) {
  return std::string_view(error.what()).find(text) != std::string_view::npos;
}

}  // namespace

TEST_CASE("a list of ordinals and ranges keeps its order", "[gpus]") {
  CHECK(resolve("2,0", cuda_machine()) == std::vector{2, 0});
  CHECK(resolve("1-2,0", cuda_machine()) == std::vector{1, 2, 0});
  CHECK(resolve("2-2", cuda_machine()) == std::vector{2});
  CHECK(resolve("all", cuda_machine()) == std::vector{0, 1, 2});
}

TEST_CASE("a list is kept as it was written", "[gpus]") {
  CHECK(parse_gpus("all", "--gpus") == GpuList{{Kind::all, 0, ""}});
  CHECK(parse_gpus("0,2-3", "--gpus") ==
        GpuList{{Kind::ordinal, 0, ""}, {Kind::ordinal, 2, ""}, {Kind::ordinal, 3, ""}});
  CHECK(parse_gpus("GPU-9a1E,17:00.0", "--gpus") ==
        GpuList{{Kind::uuid, 0, "GPU-9a1E"}, {Kind::pci, 0, "17:00.0"}});
}

TEST_CASE("a UUID may be given in full or as a unique beginning in any case", "[gpus]") {
  CHECK(resolve("GPU-9a1f0000-2222", cuda_machine()) == std::vector{1});
  CHECK(resolve("GPU-9a1e", cuda_machine()) == std::vector{0});
  CHECK(resolve("gpu-9A1F,GPU-7", cuda_machine()) == std::vector{1, 2});
}

TEST_CASE("a MIG instance is named by its UUID", "[gpus]") {
  auto machine = cuda_machine();
  machine.devices.resize(1);
  machine.devices[0].uuid = "MIG-5c1bb7a0-4444";
  machine.devices[0].mig = true;
  CHECK(resolve("MIG-5c1b", machine) == std::vector{0});
  CHECK(parse_gpus("MIG-GPU-9a1e/3/0", "--gpus").front().kind == Kind::uuid);

  const auto error = error_of([&] { resolve("MIG-5c1b,MIG-77", machine); });
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(contains(error, "a process can use one MIG instance"));
}

TEST_CASE("a PCI address may leave out its domain and function", "[gpus]") {
  const auto [text, ordinal] = GENERATE(table<std::string, int>({
      {"00000000:17:00.0", 0},
      {"0000:17:00.0", 0},
      {"0000:17:00", 0},
      {"17:00.0", 0},
      {"17:00", 0},
      {"0:17:0", 0},
      {"3b:00.0", 1},
      {"0000:3B:00", 1},
      {"0001:17:00.0", 2},
      {"1:17:00", 2},
  }));
  CAPTURE(text);
  CHECK(resolve(text, cuda_machine()) == std::vector{ordinal});
}

TEST_CASE("malformed lists are refused with the option and what to write", "[gpus]") {
  const std::string text =
      GENERATE("", ",", "0,", ",0", "0,,1", "-1", "0,2,-1,1", "0-", "-", "0--1", "0-1-2", "1-0",
               "0x1", "99999999999", "0-99999999999", "a", "+1", " 0", "0 ", "0, 1", "1.0", "GPU",
               "GPU-", "MIG-", "GPU-xyz", "GPU-9a/1", "ALL", "17:", ":17", "17:00.", "17:00.8",
               "17:20", "100:00:00.0:0", "1ff:00", "17:00.0.0", "123456789:17:00", "-1:17:00",
               "0-GPU-9a1e", "host", "host:0", "local");
  CAPTURE(text);
  const auto error = error_of([&] { parse_gpus(text, "--gpus"); });
  CAPTURE(error.what());
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "--gpus '" + text + "'"));
  CHECK(contains(error, ": write "));
}

TEST_CASE("a device is named once", "[gpus]") {
  const std::string text = GENERATE("0,0", "0-2,1", "1,0-2", "GPU-9a1e,GPU-9a1e", "17:00,17:00",
                                    "all,0", "0,all", "all,all", "00,0");
  CAPTURE(text);
  CHECK(error_of([&] { parse_gpus(text, "--gpus"); }).kind == ErrorKind::usage);
}

TEST_CASE("all beside others is refused for what it is", "[gpus]") {
  const std::string text = GENERATE("all,0", "0,all", "all,all");
  CHECK(contains(error_of([&] { parse_gpus(text, "--gpus"); }), "write all alone"));
}

TEST_CASE("a device named by two notations is refused", "[gpus]") {
  const std::string text =
      GENERATE("0,GPU-9a1e", "17:00.0,0", "0000:17:00,17:00.0", "GPU-9a1e,gpu-9A1E0", "2,1:17:00");
  CAPTURE(text);
  const auto error = error_of([&] { resolve(text, cuda_machine()); });
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "the same device"));
  CHECK(contains(error, text.substr(0, text.find(','))));
  CHECK(contains(error, text.substr(text.find(',') + 1)));
}

TEST_CASE("what is not visible is refused with everything that is", "[gpus]") {
  auto machine = cuda_machine();
  machine.devices.resize(2);
  machine.environment["CUDA_VISIBLE_DEVICES"] = "0,2,-1,1";
  const auto error = error_of([&] { resolve("0,1,2", machine); });
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(
      std::string(error.what()) ==
      "--gpus: GPU 2 is not visible (2 visible: 0 NVIDIA H200 GPU-9a1e0000-1111 00000000:17:00.0, "
      "1 NVIDIA H200 GPU-9a1f0000-2222 00000000:3B:00.0; CUDA_VISIBLE_DEVICES=0,2,-1,1)");
}

TEST_CASE("a refusal says where CUDA_VISIBLE_DEVICES is not the cause", "[gpus]") {
  const std::string text =
      GENERATE("3", "0-3", "GPU-ff", "MIG-9a1e", "17:01.0", "0002:17:00.0", "17:00.1");
  CAPTURE(text);
  const auto error = error_of([&] { resolve(text, cuda_machine()); });
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(contains(error, "3 visible"));
  CHECK(contains(error, "CUDA_VISIBLE_DEVICES is unset"));
  CHECK_FALSE(contains(error, "MIG instance"));
}

TEST_CASE("an ambiguous beginning of a UUID is refused with its candidates", "[gpus]") {
  const auto error = error_of([] { resolve("GPU-9a1", cuda_machine()); });
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(contains(error, "GPU-9a1 is ambiguous"));
  CHECK(contains(error, "GPUs 0 and 1"));
  CHECK(contains(error, "3 visible"));
}

TEST_CASE("a huge range costs no memory and names what is missing", "[gpus]") {
  const auto list = parse_gpus("0-999999999", "--gpus");
  CHECK(list.size() <= 1025);
  const auto error = error_of([&] { resolve_gpus(list, cuda_machine(), "--gpus"); });
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(contains(error, "GPU 3 is not visible"));

  CHECK(parse_gpus("2147483646-2147483647", "--gpus").size() <= 2);
  CHECK(error_of([] { resolve("2147483647", cuda_machine()); }).kind == ErrorKind::unavailable);
}

TEST_CASE("a range that is cut short is never taken for a whole one", "[gpus]") {
  auto machine = host_machine();
  machine.devices.resize(3000);
  for (int i = 0; i < 3000; ++i) machine.devices[static_cast<std::size_t>(i)].ordinal = i;
  CHECK(resolve("0-1023", machine).size() == 1024);
  CHECK(error_of([&] { resolve("0-2999", machine); }).kind == ErrorKind::unavailable);
  CHECK(error_of([&] { resolve("2000-2999", machine); }).kind == ErrorKind::unavailable);
}

TEST_CASE("a machine without devices has no GPU, whatever is asked for", "[gpus]") {
  const std::string text = GENERATE("all", "0", "GPU-9a1e");
  const auto error = error_of([&] { resolve(text, Machine{}); });
  CHECK(error.kind == ErrorKind::no_gpu);
  CHECK(contains(error, "--backend host"));
}

TEST_CASE("CPU devices are named by ordinals, ranges or all", "[gpus]") {
  CHECK(resolve("1,0", host_machine()) == std::vector{1, 0});
  CHECK(resolve("0-1", host_machine()) == std::vector{0, 1});
  CHECK(resolve("all", host_machine()) == std::vector{0, 1});
  CHECK(error_of([] { resolve("GPU-9a1e", host_machine()); }).kind == ErrorKind::usage);
  CHECK(error_of([] { resolve("17:00.0", host_machine()); }).kind == ErrorKind::usage);
}

TEST_CASE("a CPU device that is not there is refused without talk of CUDA", "[gpus]") {
  const auto error = error_of([] { resolve("9", host_machine()); });
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(contains(error, "CPU device 9"));
  CHECK(contains(error, "0 1 CPU of NUMA node 0, 1 1 CPU of NUMA node 0"));
  CHECK(contains(error, "--host-devices"));
  CHECK_FALSE(contains(error, "CUDA"));
}

TEST_CASE("a place is local or one GPU in any notation", "[gpus]") {
  CHECK(parse_place("local", "--home") == PlaceSpec{});
  CHECK(parse_place("1", "--home") == PlaceSpec{PlaceSpec::Kind::gpu, {Kind::ordinal, 1, ""}});
  CHECK(parse_place("GPU-9a1e", "--home") ==
        PlaceSpec{PlaceSpec::Kind::gpu, {Kind::uuid, 0, "GPU-9a1e"}});
  CHECK(parse_place("17:00.0", "--home") ==
        PlaceSpec{PlaceSpec::Kind::gpu, {Kind::pci, 0, "17:00.0"}});
}

TEST_CASE("more than one GPU, or none, is no place", "[gpus]") {
  const std::string text =
      GENERATE("", "all", "0,1", "0-1", "1-1", "-1", "Local", "nowhere", "host:", "99999999999");
  CAPTURE(text);
  const auto error = error_of([&] { parse_place(text, "--home"); });
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "--home '" + text + "'"));
  CHECK(contains(error, "write local"));
}
