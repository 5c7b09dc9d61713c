// SPDX-License-Identifier: MIT
// Comparison -> bytes: text, Markdown, and the cases of a JUnit file. Judges nothing.
#pragma once

#include "model/comparison.hpp"
#include "report/report.hpp"
#include "report/sweep_table.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// A row a case with ratio, interval and verdict; then modes, cases without a partner and
/// differences as sentences. `backend` names the devices.
SweepTable comparison_table(const Comparison& comparison, BackendKind backend);

/// That table within the terminal's width, 80 columns where it is not known; what a row's reason
/// is follows as sentences where the table has no room for it.
std::string comparison_text(const Comparison& comparison, BackendKind backend,
                            const RenderOptions& options = {});

/// For a comment on a pull request.
std::string comparison_markdown(const Comparison& comparison, BackendKind backend);

/// One test of a JUnit file.
struct JunitCase {
  enum class Outcome { passed, failed, skipped };
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string message;  ///< of what failed or was skipped
  double seconds = 0;
};

/// A row a test: slower failed, unclear and unmatched were skipped.
std::vector<JunitCase> junit_cases(const Comparison& comparison, BackendKind backend);

/// A result a test: what failed or is slower than wanted failed, what is skipped, or unclear
/// against its baseline, was skipped.
std::vector<JunitCase> junit_cases(const Report& report);

/// The XML that CI systems read: one suite of that name.
std::string render_junit(std::string_view suite, std::span<const JunitCase> cases);

}  // namespace mgpu
