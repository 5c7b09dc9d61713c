// SPDX-License-Identifier: MIT
#include "backend/cuda_worker.hpp"

#include "backend/cuda_buffer.hpp"
#include "backend/nvtx.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mgpu {
namespace {

#if CUDART_VERSION >= 13000
/// `node`: of a site on the host, where it is known.
cudaMemLocation location(Site site, std::optional<int> node) {
  if (!site.on_host()) return {cudaMemLocationTypeDevice, site.index};
  return node ? cudaMemLocation{cudaMemLocationTypeHostNuma, *node}
              : cudaMemLocation{cudaMemLocationTypeHost, 0};
}
cudaError_t prefetch_to(cudaMemLocation to, Part part, cudaStream_t stream) {
  return cudaMemPrefetchAsync(address(part), part.bytes, to, 0, stream);
}
#else
int location(Site site, std::optional<int>) {
  return site.on_host() ? cudaCpuDeviceId : site.index;
}
cudaError_t prefetch_to(int to, Part part, cudaStream_t stream) {
  return cudaMemPrefetchAsync(address(part), part.bytes, to, stream);
}
#endif

}  // namespace

CudaWorker::CudaWorker(CudaDevice& device, const HostMemory& host) : device_(device), host_(host) {
  device.bind();
  stream_ = make_stream(device.ordinal());
}

CudaWorker::~CudaWorker() {
  make_current(device_.ordinal());
  for (auto& mark : marks_) device_.timing_events().give_back(std::move(mark));
  for (auto& [device, event] : waits_) device->order_events().give_back(std::move(event));
}

Nanos CudaWorker::begin(Nanos) {
  device_.bind();
  bind_thread(device_.cpus());
  used_ = 0;
  return now();
}

Nanos CudaWorker::now() {
  return steady_now();
}

std::optional<int> CudaWorker::host_node(Site site) const {
  return device_.knows_host_nodes() ? host_.node(site) : std::nullopt;
}

void CudaWorker::advise(Part part, Advice advice, Site home) {
  if (part.bytes == 0 || advice == Advice::none) return;
  device_.bind();
  const auto give = [&](cudaMemoryAdvise what, Site where) {
    require(cudaMemAdvise(address(part), part.bytes, what, location(where, host_node(where))),
            "cudaMemAdvise", device_.ordinal());
  };
  const Site self{Site::Kind::device, device_.ordinal()};
  switch (advice) {
    case Advice::preferred:
      return give(cudaMemAdviseSetPreferredLocation, home);
    case Advice::accessed_by:
      return give(cudaMemAdviseSetAccessedBy, self);
    case Advice::read_mostly:
      return give(cudaMemAdviseSetReadMostly, self);
    case Advice::none:
      return;
  }
}

void CudaWorker::prefetch(Part part, Site to) {
  if (part.bytes == 0) return;
  device_.bind();
  require(prefetch_to(location(to, host_node(to)), part, stream_.get()), "cudaMemPrefetchAsync",
          device_.ordinal());
}

void CudaWorker::copy(Part destination, Part source, Engine engine, int access) {
  if (destination.bytes == 0) return;
  device_.bind();
  switch (engine) {
    case Engine::kernel:
      require(launch_copy(address(destination), address(source), destination.bytes, access,
                          stream_.get()),
              "copy kernel", device_.ordinal());
      break;
    case Engine::memcpy:
      require(cudaMemcpyAsync(address(destination), address(source), destination.bytes,
                              cudaMemcpyDefault, stream_.get()),
              "cudaMemcpyAsync", device_.ordinal());
      break;
  }
}

int CudaWorker::mark() {
  if (used_ == marks_.size()) marks_.push_back(device_.timing_events().take());
  device_.bind();
  require(cudaEventRecord(marks_[used_].get(), stream_.get()), "cudaEventRecord",
          device_.ordinal());
  return static_cast<int>(used_++);
}

cudaEvent_t CudaWorker::event_on(CudaDevice& device) {
  auto found = std::ranges::find(waits_, &device, &std::pair<CudaDevice*, CudaEvent>::first);
  if (found == waits_.end())
    found = waits_.emplace(waits_.end(), &device, device.order_events().take());
  return found->second.get();
}

void CudaWorker::wait_for(Worker& other, OwnerWait how) {
  auto& before = static_cast<CudaWorker&>(other);
  switch (how) {
    case OwnerWait::none:
      break;
    case OwnerWait::host:
      device_.bind();
      require(cudaStreamSynchronize(before.stream_.get()), "cudaStreamSynchronize",
              before.device_.ordinal());
      break;
    case OwnerWait::event: {
      // An event has to be of the device whose stream records it, current or not; a stream may wait
      // for one of any device.
      const cudaEvent_t event = event_on(before.device_);
      device_.bind();
      require(cudaEventRecord(event, before.stream_.get()), "cudaEventRecord",
              before.device_.ordinal());
      require(cudaStreamWaitEvent(stream_.get(), event, 0), "cudaStreamWaitEvent",
              device_.ordinal());
      break;
    }
  }
}

void CudaWorker::sync() {
  device_.bind();
  require(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize", device_.ordinal());
}

void CudaWorker::anchor() {
  sync();
  auto& events = device_.timing_events();
  CudaDevice::Anchor& anchor = device_.anchor();
  if (!anchor.event) anchor.event = events.take();
  CudaEvent trial = events.take();
  device_.bind();
  Nanos shortest = std::numeric_limits<Nanos>::max();
  constexpr int tries = 8;
  for (int i = 0; i < tries; ++i) {
    const Nanos before = now();
    require(cudaEventRecord(trial.get(), stream_.get()), "cudaEventRecord", device_.ordinal());
    // Polled for these microseconds even where threads block: waking up would take longer than what
    // is measured.
    cudaError_t status = cudaErrorNotReady;
    while (status == cudaErrorNotReady) status = cudaEventQuery(trial.get());
    const Nanos took = now() - before;
    cudaGetLastError();  // not ready is an error to the runtime, and the next launch would report
                         // it
    require(status, "cudaEventQuery", device_.ordinal());
    if (took >= shortest) continue;
    shortest = took;
    anchor.at = before + took / 2;
    std::swap(anchor.event, trial);
  }
  events.give_back(std::move(trial));
}

Nanos CudaWorker::at(int mark) {
  device_.bind();
  float ms = 0;
  require(cudaEventElapsedTime(&ms, device_.anchor().event.get(),
                               marks_.at(static_cast<std::size_t>(mark)).get()),
          "cudaEventElapsedTime", device_.ordinal());
  return device_.anchor().at + std::llround(static_cast<double>(ms) * 1e6);
}

void CudaWorker::push_range(const char* name) {
  nvtx_push(name);
}

void CudaWorker::pop_range() {
  nvtx_pop();
}

}  // namespace mgpu
