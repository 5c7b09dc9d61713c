// SPDX-License-Identifier: MIT
// What shapes a case, as people read it: which of it varies over several cases, which is common.
#pragma once

#include "model/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// One option of a case.
struct CaseField {
  std::string_view header;  ///< "owner wait"
  bool number;              ///< its cells stand to the right
  bool speaks;              ///< its cell tells what it is without its header
  std::string (*cell)(const Case&);
  std::string (*phrase)(const Case&, BackendKind);  ///< in a sentence; empty where as by default
  bool (*follows)(const Case&);  ///< other options decide it, as by default; may be null
};

/// The options that differ between the cases, in the order of `case_phrase`; what follows from
/// others in every case is none of them.
std::vector<const CaseField*> varying_fields(std::span<const CaseResult> cases);

/// "4 GB managed, owner wait none": what all cases have in common.
std::string common_phrase(std::span<const CaseResult> cases, BackendKind backend);

/// "gpus 0,1, kernel, split 2": `fields` but size of a case, to tell it from others.
std::string series_name(const Case& what, std::span<const CaseField* const> fields);

/// Whether there are times to show.
bool is_measured(const CaseResult& result);

/// Whether a report shows more than one case; several results of one are its rounds.
bool has_several_cases(std::span<const CaseResult> cases);

}  // namespace mgpu
