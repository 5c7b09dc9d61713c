// SPDX-License-Identifier: MIT
#include "backend/cuda_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace mgpu {
namespace {

struct Row {
  int code;
  ErrorKind kind;
  bool lost;
  std::string_view hint;
};

constexpr std::string_view relaunch =
    "no further CUDA call of this process can succeed; dmesg may name an Xid";
constexpr std::string_view no_code =
    "this build of mgpu has no kernel image for it: build with -DCMAKE_CUDA_ARCHITECTURES=native";
constexpr std::string_view no_jit =
    "its kernels would have to be compiled at run time: build with "
    "-DCMAKE_CUDA_ARCHITECTURES=native";
constexpr std::string_view mps = "see the log of nvidia-cuda-mps-control";

// What is not here is a runtime failure that the process survives.
constexpr auto rows = std::to_array<Row>({
    {2, ErrorKind::memory, false,
     "take a smaller --size; nvidia-smi shows other processes that may hold it"},
    {3, ErrorKind::no_gpu, false, "the driver could not be initialised: see dmesg and nvidia-smi"},
    {4, ErrorKind::runtime, true, ""},
    {34, ErrorKind::no_gpu, false,
     "a stub libcuda was loaded: take the toolkit's stubs folder out of LD_LIBRARY_PATH"},
    {35, ErrorKind::no_gpu, false, "update the NVIDIA driver"},
    {36, ErrorKind::unavailable, false, "update the NVIDIA driver"},
    {46, ErrorKind::unavailable, false,
     "another process holds it, or its compute mode forbids it: see nvidia-smi"},
    {100, ErrorKind::no_gpu, false, "see CUDA_VISIBLE_DEVICES and nvidia-smi -L"},
    // Prefetch and advice give this one where concurrent managed access is missing (WSL, Jetson).
    {101, ErrorKind::unavailable, false,
     "there is no such GPU, or, of prefetch and advice, it has concurrentManagedAccess=0"},
    {200, ErrorKind::unavailable, false, no_code},
    {205, ErrorKind::unavailable, false,
     "the memory of the other GPU could not be mapped (a small BAR, or the IOMMU)"},
    {209, ErrorKind::unavailable, false, no_code},
    {214, ErrorKind::runtime, true, "memory of the GPU is broken: see nvidia-smi -q -d ECC"},
    {216, ErrorKind::unavailable, false, "another process holds it"},
    {217, ErrorKind::unavailable, false, "these two GPUs cannot access each other's memory"},
    {218, ErrorKind::unavailable, false, no_jit},
    {220, ErrorKind::runtime, true, "an NVLink is broken: see nvidia-smi nvlink -e"},
    {221, ErrorKind::unavailable, false, no_jit},
    {222, ErrorKind::unavailable, false, no_jit},
    {223, ErrorKind::unavailable, false, no_jit},
    {226, ErrorKind::runtime, true, relaunch},
    {700, ErrorKind::runtime, true, relaunch},
    {702, ErrorKind::runtime, true, relaunch},
    {709, ErrorKind::runtime, true, relaunch},
    {710, ErrorKind::runtime, true, relaunch},
    {711, ErrorKind::unavailable, false, "no more GPUs can be peers of this one"},
    {714, ErrorKind::runtime, true, relaunch},
    {715, ErrorKind::runtime, true, relaunch},
    {716, ErrorKind::runtime, true, relaunch},
    {717, ErrorKind::runtime, true, relaunch},
    {718, ErrorKind::runtime, true, relaunch},
    {719, ErrorKind::runtime, true, relaunch},
    {721, ErrorKind::runtime, true, relaunch},
    {801, ErrorKind::unavailable, false, "not supported there"},
    {802, ErrorKind::no_gpu, false,
     "on a machine with NVSwitch nvidia-fabricmanager has to run: see systemctl status "
     "nvidia-fabricmanager"},
    {803, ErrorKind::no_gpu, false,
     "libcuda and the kernel driver do not match: reboot, or reload the NVIDIA kernel modules"},
    {804, ErrorKind::no_gpu, false,
     "this GPU takes no compatibility libcuda: take it out of LD_LIBRARY_PATH"},
    {805, ErrorKind::no_gpu, false, mps},
    {806, ErrorKind::no_gpu, false, mps},
    {807, ErrorKind::no_gpu, false, mps},
    {808, ErrorKind::no_gpu, false, mps},
    {809, ErrorKind::no_gpu, false, mps},
    {810, ErrorKind::runtime, true, relaunch},
    {911, ErrorKind::runtime, true, relaunch},
    // A GPU that has fallen off the bus may show as this.
    {999, ErrorKind::runtime, true, relaunch},
});

Row find_row(int code) {
  const auto* row = std::ranges::find(rows, code, &Row::code);
  return row != rows.end() ? *row : Row{code, ErrorKind::runtime, false, ""};
}

std::string describe(const CudaFailure& failure, std::string_view hint) {
  std::string message;
  if (failure.device) message += fmt::format("GPU {}: ", *failure.device);
  message += fmt::format("{}: {} ({}, {})", failure.call, failure.text, failure.name, failure.code);
  if (!failure.about.empty()) message += ", " + failure.about;
  if (!hint.empty()) message += fmt::format(": {}", hint);
  return message;
}

}  // namespace

Error cuda_error(const CudaFailure& failure) {
  Row row = find_row(failure.code);
  // Many vGPU profiles claim managed memory and refuse it.
  if (failure.code == 801 && failure.call == "cudaMallocManaged")
    row.hint = "unified memory is not supported there: use --memory device";
  Error error(row.kind, describe(failure, row.hint), failure.device);
  error.lost = row.lost;
  return error;
}

Error cuda_start_error(const CudaFailure& failure, int driver_version, int runtime_version) {
  constexpr std::string_view instead = "use --backend host to measure CPUs";
  // No driver and one that is too old are the same error; only the version tells them apart.
  if (failure.code == 35 && driver_version == 0)
    return Error(ErrorKind::no_gpu, fmt::format("no NVIDIA driver found ({}, {}): {}", failure.name,
                                                failure.code, instead));
  if (failure.code == 35 && driver_version < runtime_version)
    return Error(ErrorKind::no_gpu,
                 fmt::format("the driver supports CUDA {}, mgpu needs {}: update the driver, or {}",
                             cuda_version(driver_version), cuda_version(runtime_version), instead));
  const Row row = find_row(failure.code);
  return Error(ErrorKind::no_gpu, describe(failure, row.kind == ErrorKind::no_gpu ? row.hint : "") +
                                      "; " + std::string(instead));
}

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace mgpu
