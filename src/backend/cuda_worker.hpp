// SPDX-License-Identifier: MIT
// A stream with its marks, and the events by which other streams are waited for. No policy.
#pragma once

#include "backend/cuda_device.hpp"
#include "backend/host_memory.hpp"

#include <utility>
#include <vector>

namespace mgpu {

class CudaWorker final : public Worker {
 public:
  CudaWorker(CudaDevice& device, const HostMemory& host);  ///< which outlive this
  ~CudaWorker() override;
  CudaWorker(const CudaWorker&) = delete;
  CudaWorker& operator=(const CudaWorker&) = delete;

  Nanos begin(Nanos release) override;
  Nanos now() override;
  void advise(Part part, Advice advice, Site home) override;
  void prefetch(Part part, Site to) override;
  void copy(Part destination, Part source, Engine engine, int access) override;
  int mark() override;
  void wait_for(Worker& other, OwnerWait how) override;
  void sync() override;
  void anchor() override;
  Nanos at(int mark) override;
  void push_range(const char* name) override;
  void pop_range() override;

 private:
  cudaEvent_t event_on(CudaDevice& device);
  std::optional<int> host_node(Site site) const;

  CudaDevice& device_;
  const HostMemory& host_;
  CudaStream stream_;
  std::vector<CudaEvent> marks_;
  std::size_t used_ = 0;  // of marks_, since begin
  // One for each device whose streams were waited for, recorded there.
  std::vector<std::pair<CudaDevice*, CudaEvent>> waits_;
};

}  // namespace mgpu
