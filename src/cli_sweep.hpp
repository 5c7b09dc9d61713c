// SPDX-License-Identifier: MIT
// The axes of a sweep: which options of a case take lists and ranges, and how their values nest.
// Knows no value's meaning: each goes through its option's own check.
#pragma once

#include "cli_options.hpp"
#include "model/request.hpp"

#include <functional>
#include <map>
#include <string_view>
#include <vector>

namespace mgpu {

/// Collects values while the options of a case are applied, which leave the one at hand in `spec`.
class AxisCollector {
 public:
  explicit AxisCollector(const CaseSpec& spec) : spec_(spec) {}
  AxisCollector(const AxisCollector&) = delete;
  AxisCollector& operator=(const AxisCollector&) = delete;

  /// Makes those options take lists; both must outlive their `apply`, which calls `settle` before
  /// each value is taken and throws Error{usage} for a wrong list.
  void bind(Options& options, const std::function<void()>& settle);

  /// What `spec` says of this option is one more of its values.
  void take(std::string_view option);

  /// Outermost first, only what was given; with nothing that varies and no preset also sizes.
  /// Throws Error{usage} where they make too many cases.
  std::vector<Axis> axes(bool has_preset) const;

 private:
  const CaseSpec& spec_;
  std::map<std::string_view, Axis> values_;
};

}  // namespace mgpu
