// SPDX-License-Identifier: MIT
// Several cases as one table and the sentences below it, which text and Markdown share. No layout,
// no colour.
#pragma once

#include "model/sweep.hpp"
#include "report/phrases.hpp"
#include "report/report.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

struct SweepTable {
  std::string heading;             ///< "5 cases (1 skipped), 4 GB managed"
  std::vector<Column> columns;     ///< the number, what varies, then what was found
  std::vector<std::string> notes;  ///< by row: why there is nothing to find, else empty
  std::vector<bool> best;          ///< by row: among the fastest of its size
  std::vector<std::string> lines;  ///< what the cases tell together, causes last
};

/// How the sentences name the cases: "rows 1, 3-5", or "4a-4c" where `noun` is empty.
struct RowNames {
  std::string_view noun;
  std::vector<std::string> names;  ///< by case
  std::string list(const std::vector<std::size_t>& cases) const;
};

/// A row a case.
SweepTable sweep_table(const Report& report, HistogramScale scale);

/// The preset issue-2615 as the issue shows it: scenarios down, policies across. Nothing where the
/// command asked for something else, or where its options made other cases of it.
std::optional<SweepTable> seed_table(const Report& report);

/// The best of each size that several cases have.
std::vector<BestOfSize> contests(std::span<const CaseResult> cases);

/// "36 cases (2 skipped, 1 failed)".
std::string counted_cases(const Report& report);

/// "skipped: no second GPU", "FAIL: wrong data"; empty where a case was measured.
std::string note_of(const CaseResult& result);

/// Each distinct note of these cases once: "rows 3, 4: skipped: no second GPU".
std::vector<std::string> note_lines(const Report& report, const std::vector<std::size_t>& cases,
                                    const RowNames& names);

/// The best of each size, what was verified, marks and causes, each once with its cases. Best cases
/// are named, or `starred` where the rows carry the star.
std::vector<std::string> finding_lines(const Report& report, const RowNames& names, bool starred);

}  // namespace mgpu
