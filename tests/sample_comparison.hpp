// SPDX-License-Identifier: MIT
// Results to compare, made by hand: samples by formula, times of day by number. Measures nothing.
#pragma once

#include "model/comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

namespace mgpu {

using Samples = std::vector<double>;

/// Normal noise of a fixed seed, the same on every machine.
class Noise {
 public:
  explicit Noise(unsigned seed) : random_(seed) {}
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }

  /// A millisecond, independent noise of relative sd `sd`.
  Samples independent(std::size_t n, double sd) {
    Samples samples(n);
    for (double& ns : samples) ns = 1e6 * std::exp(sd * (*this)());
    return samples;
  }

  /// The same where each sample keeps `rho` of the one before.
  Samples correlated(std::size_t n, double sd, double rho) {
    Samples samples(n);
    double state = (*this)();
    for (double& ns : samples) {
      ns = 1e6 * std::exp(sd * state);
      state = rho * state + std::sqrt(1 - rho * rho) * (*this)();
    }
    return samples;
  }

 private:
  std::mt19937_64 random_;
};

inline Samples scaled(Samples samples, double factor) {
  for (double& ns : samples) ns *= factor;
  return samples;
}

/// One run of one case on a GPU, `second` after midnight.
inline Report run_of(Samples samples, int second = 0, Bytes size = Bytes{64} << 20) {
  Report report;
  report.tool_version = "0.1.0";
  report.started = fmt::format("2026-01-01T{:02}:{:02}:{:02}.000Z", second / 3600, second / 60 % 60,
                               second % 60);
  Device gpu;
  gpu.name = "NVIDIA H200";
  report.machine.devices = {gpu};
  CaseResult result;
  result.what.gpus = {0};
  result.what.size = size;
  result.samples = static_cast<std::int64_t>(samples.size());
  if (!samples.empty()) result.summary = summarize(samples);
  result.samples_ns = std::move(samples);
  report.cases = {std::move(result)};
  return report;
}

/// Rounds of one case, `every` seconds apart from `first` on.
inline std::vector<Report> rounds_of(const std::vector<Samples>& rounds, int first, int every) {
  std::vector<Report> reports;
  for (const Samples& samples : rounds)
    reports.push_back(run_of(samples, first + every * static_cast<int>(reports.size())));
  return reports;
}

}  // namespace mgpu
