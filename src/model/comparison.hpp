// SPDX-License-Identifier: MIT
// Saved results against others, case by case: which are slower, and which cannot be compared.
// Reads no file, renders nothing.
#pragma once

#include "model/result.hpp"

#include <span>

namespace mgpu {

/// Cases are the same where everything that shapes them and the models of their devices are;
/// results of one case on a side are its rounds. Rows come in the order of the base. Skipped and
/// failed results have no samples and are unmatched. Throws Error{usage} where a sample is not
/// above 0, or a case names no device of its report.
Comparison compare(std::span<const Report> base, std::span<const Report> current,
                   const CompareOptions& options = {});

/// 8 where a row is slower, else 9 where there is no row, else 0.
int exit_code(const Comparison& comparison);

}  // namespace mgpu
