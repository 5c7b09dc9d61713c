// SPDX-License-Identifier: MIT
#include "backend/cuda_error.hpp"

#include "backend/nvml.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>

namespace mgpu {
namespace {

bool says(const Error& error, const std::string& words) {
  return std::string(error.what()).find(words) != std::string::npos;
}

CudaFailure first_call(int code) {
  return {code, "cudaErrorName", "some text", "cudaGetDeviceCount"};
}

TEST_CASE("a CUDA failure is told with GPU, call, text, name, number and circumstances") {
  const auto error = cuda_error({2, "cudaErrorMemoryAllocation", "out of memory", "cudaMalloc", 3,
                                 "4 GiB wanted, 1 GiB free"});
  CHECK(error.kind == ErrorKind::memory);
  CHECK(error.device == 3);
  CHECK_FALSE(error.lost);
  CHECK(says(
      error,
      "GPU 3: cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2), 4 GiB wanted, 1 GiB free"));
  CHECK(says(error, "--size"));
}

TEST_CASE("a CUDA failure that nothing is known about is a runtime failure") {
  const auto error =
      cuda_error({1, "cudaErrorInvalidValue", "invalid argument", "cudaMemcpyAsync", 0});
  CHECK(error.kind == ErrorKind::runtime);
  CHECK_FALSE(error.lost);
  CHECK(std::string(error.what()) ==
        "GPU 0: cudaMemcpyAsync: invalid argument (cudaErrorInvalidValue, 1)");
}

TEST_CASE("CUDA failures after which the process has to be started again are lost") {
  const int code = GENERATE(4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721,
                            810, 911, 999);
  CAPTURE(code);
  const auto error = cuda_error({code, "name", "text", "cudaStreamSynchronize", 1});
  CHECK(error.lost);
  CHECK(error.kind == ErrorKind::runtime);
  CHECK(error.device == 1);
}

TEST_CASE(
    "CUDA failures for what a GPU or a pair cannot do are unavailable and leave CUDA usable") {
  const int code = GENERATE(36, 46, 101, 200, 205, 209, 216, 217, 218, 221, 222, 223, 711, 801);
  CAPTURE(code);
  const auto error = cuda_error({code, "name", "text", "call", 0});
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK_FALSE(error.lost);
}

TEST_CASE("managed memory that the runtime refuses is told as unified memory") {
  const auto error =
      cuda_error({801, "cudaErrorNotSupported", "operation not supported", "cudaMallocManaged", 1});
  CHECK(error.kind == ErrorKind::unavailable);
  CHECK(says(error, "GPU 1: cudaMallocManaged"));
  CHECK(says(error, "unified memory is not supported there: use --memory device"));
}

TEST_CASE("a missing kernel image names the architecture and how to build for it") {
  const auto error = cuda_error(
      {209, "cudaErrorNoKernelImageForDevice", "no kernel image", "copy kernel", 0, "sm_70"});
  CHECK(says(error, "sm_70"));
  CHECK(says(error, "CMAKE_CUDA_ARCHITECTURES"));
}

TEST_CASE("a start without driver and one with an old driver are told apart by the version") {
  const auto none = cuda_start_error(first_call(35), 0, 13000);
  CHECK(says(none, "no NVIDIA driver found"));
  CHECK(says(none, "--backend host"));
  const auto old = cuda_start_error(first_call(35), 12040, 13000);
  CHECK(says(old, "the driver supports CUDA 12.4, mgpu needs 13.0"));
  CHECK(says(old, "--backend host"));
}

TEST_CASE("every failure to start is no_gpu, says what to do and names the host backend") {
  struct Start {
    int code;
    const char* hint;
  };
  const auto start = GENERATE(
      Start{3, "dmesg"}, Start{34, "stubs"}, Start{100, "CUDA_VISIBLE_DEVICES"},
      Start{802, "nvidia-fabricmanager"}, Start{803, "reboot"}, Start{804, "LD_LIBRARY_PATH"},
      Start{805, "mps"}, Start{999, "some text"}, Start{46, "some text"});
  CAPTURE(start.code);
  const auto error = cuda_start_error(first_call(start.code), 13000, 13000);
  CHECK(error.kind == ErrorKind::no_gpu);
  CHECK_FALSE(error.lost);
  CHECK(says(error, start.hint));
  CHECK(says(error, std::to_string(start.code)));
  CHECK(says(error, "use --backend host to measure CPUs"));
}

TEST_CASE("CUDA versions are printed as NVIDIA writes them") {
  CHECK(cuda_version(13000) == "13.0");
  CHECK(cuda_version(12090) == "12.9");
}

TEST_CASE("without NVML its state says why and devices pass for whole GPUs") {
  const Nvml nvml("libmgpu-has-no-such-library.so.1");
  CHECK(nvml.state().starts_with("unavailable: "));
  CHECK(nvml.state().find("libmgpu-has-no-such-library.so.1") != std::string::npos);
  const auto identity = nvml.identify("9a1e0000-0000-0000-0000-000000000000");
  CHECK(identity.uuid == "GPU-9a1e0000-0000-0000-0000-000000000000");
  CHECK_FALSE(identity.mig);
}

TEST_CASE("a library that is not NVML is as good as none") {
  const Nvml nvml("libc.so.6");
  CHECK(nvml.state().find("nvmlInit_v2") != std::string::npos);
}

}  // namespace
}  // namespace mgpu
