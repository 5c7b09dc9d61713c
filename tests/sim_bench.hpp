// SPDX-License-Identifier: MIT
// What tests on a simulated backend share: opened devices, round costs, the error that a call
// throws.
#pragma once

#include "sim.hpp"

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace mgpu {

// Round numbers: a local copy takes 1 ns a byte, one over a link 10.
inline SimOptions round_options() {
  SimOptions options;
  options.local = 1000;
  options.link = 100;
  options.launch = 10;
  options.sync = 5;
  options.prefetch_call = 3;
  options.advise_call = 4;
  options.event_call = 1;
  options.allocate_call = 100;
  options.open_worker_call = 20;
  options.wake = {2};
  return options;
}

// A backend with all its devices open and connected, and what a lane needs of it.
struct SimBench {
  explicit SimBench(const SimOptions& options = round_options()) : sim(options) {
    std::vector<int> all(static_cast<std::size_t>(options.gpus));
    std::iota(all.begin(), all.end(), 0);
    sim.open(all, Wait::block, Affinity::near);
    if (options.peers)
      for (int a : all)
        for (int b : all)
          if (a != b) sim.connect(a, b);
  }
  std::unique_ptr<Buffer> device(int ordinal, Bytes bytes) {
    return sim.allocate({MemoryKind::device, on_device(ordinal), bytes});
  }
  std::unique_ptr<Buffer> managed(Bytes bytes) {
    return sim.allocate({MemoryKind::managed, on_device(0), bytes});
  }
  SimBackend sim;
};

inline Part part(const std::unique_ptr<Buffer>& buffer, Bytes bytes, Bytes offset = 0) {
  return {buffer.get(), offset, bytes};
}

template <class F>
Error thrown_by(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no mgpu::Error was thrown");
  throw std::logic_error("not reached");
}

}  // namespace mgpu
