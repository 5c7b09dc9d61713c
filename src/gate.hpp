// SPDX-License-Identifier: MIT
// What a run must reach: --expect and --baseline. Measures nothing, and ends no run.
#pragma once

#include "app.hpp"
#include "model/request.hpp"
#include "model/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mgpu {

/// Why a judged case is slower than wanted, with both numbers; nothing where it is not.
std::optional<ErrorInfo> slower_than_wanted(const CaseResult& result, BackendKind backend);

class Gate {
 public:
  /// Reads the baseline; `notes` gets what was ignored of it. Throws Error{usage}.
  Gate(const Request& request, const Console& console, std::vector<std::string>& notes);

  /// Before anything runs. Throws Error{usage} where an expected rate is for a size that no case
  /// has, or does not say what it counts and a link is crossed. `notes` gets how many cases the
  /// baseline lacks.
  void check(const Plan& plan, const Machine& machine, std::vector<std::string>& notes) const;

  /// Sets `expect` and `baseline` of a result that is about to join `report`.
  void judge(CaseResult& result, const Report& report) const;

  /// What is wrong with a whole run, all of whose results were judged: something is slower, an
  /// expectation met no measured case, or nothing could be compared.
  std::optional<ErrorInfo> verdict(const Report& report) const;

 private:
  const Request& request_;
  std::map<std::string, std::vector<Report>> baseline_;  // by key of the one case of each
};

}  // namespace mgpu
