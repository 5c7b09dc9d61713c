// SPDX-License-Identifier: MIT
#include "backend/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu {

CudaStream make_stream(int device) {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
          device);
  return CudaStream(stream);
}

EventPool::EventPool(int device, unsigned flags, int count) : device_(device), flags_(flags) {
  for (int i = 0; i < count; ++i) idle_.push_back(make());
}

CudaEvent EventPool::make() const {
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, flags_), "cudaEventCreateWithFlags", device_);
  return CudaEvent(event);
}

CudaEvent EventPool::take() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    require(make_current(device_), "cudaSetDevice", device_);
    return make();
  }
  CudaEvent event = std::move(idle_.back());
  idle_.pop_back();
  return event;
}

void EventPool::give_back(CudaEvent event) noexcept {
  std::lock_guard lock(mutex_);
  try {
    idle_.push_back(std::move(event));
  } catch (const std::bad_alloc&) {  // then it is destroyed
  }
}

CudaDevice::CudaDevice(int ordinal, Wait wait, std::vector<int> cpus)
    : ordinal_(ordinal), cpus_(std::move(cpus)) {
  set_wait(wait);
  int nearest = -1;
  // Drivers before 12.2 do not know the attribute.
  if (cudaDeviceGetAttribute(&nearest, cudaDevAttrHostNumaId, ordinal) != cudaSuccess)
    cudaGetLastError();
  knows_host_nodes_ = nearest >= 0;
  bind();
  stream_ = make_stream(ordinal);
  void* memory = nullptr;
  require(cudaMalloc(&memory, sizeof(CheckCounts)), "cudaMalloc", ordinal);
  counts_.reset(memory);
  constexpr int enough = 32;  // eight lanes with four marks
  timing_events_ = std::make_unique<EventPool>(ordinal, cudaEventDefault, enough);
  order_events_ = std::make_unique<EventPool>(ordinal, cudaEventDisableTiming, enough);
  load_kernels();
}

CudaDevice::~CudaDevice() {
  make_current(ordinal_);
}

void CudaDevice::set_wait(Wait wait) {
  if (wait_ == wait) return;
  const unsigned flags =
      wait == Wait::spin ? cudaDeviceScheduleSpin : cudaDeviceScheduleBlockingSync;
  // Makes the context with these flags, or changes those of one that exists.
  require(cudaInitDevice(ordinal_, flags, cudaInitDeviceFlagsAreValid), "cudaInitDevice", ordinal_);
  wait_ = wait;
}

void CudaDevice::load_kernels() {
  // Kernels are loaded at their first launch; so each is launched here and none inside a sample.
  constexpr Bytes bytes = 64;
  void* memory = nullptr;
  require(cudaMalloc(&memory, 2 * bytes), "cudaMalloc", ordinal_);
  const CudaMemory scratch(memory);
  auto* const to = static_cast<char*>(memory);
  const char* const from = to + bytes;
  fill(to, 2 * bytes, Pattern{}, 0);
  for (const int access : {1, 4, 8, 16})
    if (const auto status = launch_copy(to, from, bytes, access, stream_.get());
        status != cudaSuccess) {
      int major = 0, minor = 0;
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal_);
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal_);
      throw cuda_error(
          cuda_failure(status, "copy kernel", ordinal_, fmt::format("sm_{}{}", major, minor)));
    }
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync",
          ordinal_);
  sync("the first copies");
  check(to, bytes, Pattern{}, 0);
  chase(to, 2 * bytes, 1);
}

void CudaDevice::sync(std::string_view after) const {
  if (const auto status = cudaStreamSynchronize(stream_.get()); status != cudaSuccess)
    throw cuda_error(
        cuda_failure(status, "cudaStreamSynchronize", ordinal_, fmt::format("after {}", after)));
}

void CudaDevice::fill(void* data, Bytes bytes, Pattern pattern, Bytes base) {
  bind();
  std::lock_guard lock(mutex_);
  require(launch_fill(data, bytes, pattern, base, stream_.get()), "fill kernel", ordinal_);
  sync("a fill");
}

Check CudaDevice::check(const void* data, Bytes bytes, Pattern pattern, Bytes base) {
  bind();
  std::lock_guard lock(mutex_);
  CheckCounts counts;
  auto* const on_device = static_cast<CheckCounts*>(counts_.get());
  require(cudaMemcpyAsync(on_device, &counts, sizeof counts, cudaMemcpyDefault, stream_.get()),
          "cudaMemcpyAsync", ordinal_);
  require(launch_check(data, bytes, pattern, base, on_device, stream_.get()), "check kernel",
          ordinal_);
  require(cudaMemcpyAsync(&counts, on_device, sizeof counts, cudaMemcpyDefault, stream_.get()),
          "cudaMemcpyAsync", ordinal_);
  sync("a check");
  Check result;
  result.bad = counts.bad;
  if (result.bad > 0) result.first = counts.first;
  std::ranges::copy(counts.got, result.got.begin());
  return result;
}

double CudaDevice::chase(void* chain, Bytes bytes, int hops) {
  bind();
  std::lock_guard lock(mutex_);
  int multiprocessors = 0;
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ordinal_),
          "cudaDeviceGetAttribute", ordinal_);
  // How far the memory is depends on the multiprocessor: some of them, in equal distances.
  constexpr int most_seats = 16;
  const int seats = std::clamp(hops, 1, std::min(most_seats, multiprocessors));
  const int each = std::max(hops / seats, 1);
  require(launch_chain(chain, bytes, stream_.get()), "chain kernel", ordinal_);
  CudaEvent start = timing_events_->take(), end = timing_events_->take();
  double ns = 0;
  for (int i = 0; i < seats; ++i) {
    require(cudaEventRecord(start.get(), stream_.get()), "cudaEventRecord", ordinal_);
    // Each goes on where the one before has stopped, into what no cache holds yet.
    require(launch_chase(chain, bytes, static_cast<std::uint64_t>(i) * each, each,
                         i * multiprocessors / seats, multiprocessors, stream_.get()),
            "chase kernel", ordinal_);
    require(cudaEventRecord(end.get(), stream_.get()), "cudaEventRecord", ordinal_);
    sync("a chase");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, start.get(), end.get()), "cudaEventElapsedTime", ordinal_);
    ns += static_cast<double>(ms) * 1e6 / each;
  }
  timing_events_->give_back(std::move(start));
  timing_events_->give_back(std::move(end));
  return ns / seats;
}

Bytes CudaDevice::free_memory() const {
  bind();
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", ordinal_);
  return free;
}

}  // namespace mgpu
