// SPDX-License-Identifier: MIT
// Fleet -> bytes: a page of text or Markdown whatever its size, and the tests of a JUnit file.
// Judges nothing.
#pragma once

#include "model/fleet_result.hpp"
#include "report/comparison.hpp"
#include "report/report.hpp"
#include "report/sweep_table.hpp"

#include <string>
#include <vector>

namespace mgpu {

/// The GPUs' medians of one case at equal bytes, for a histogram.
struct FleetBars {
  std::string caption;  ///< "case 2"; empty where there is one case
  std::vector<double> medians;
};

/// What a page shows, the worst first; it says how much was left out.
struct FleetPage {
  std::string heading;  ///< "1000 nodes, 8000 GPUs, 1 case"
  SweepTable cases;
  std::vector<FleetBars> bars;     ///< of few cases only
  std::vector<SweepTable> tables;  ///< outliers, then every GPU of few, or the slowest nodes
  std::vector<std::string> lines;  ///< failures and missing ranks
  std::string exclude;             ///< "none", or the list
};
FleetPage fleet_page(const Fleet& fleet, BackendKind backend);

/// The case of a GPU, which the fleet has.
const FleetCase& case_of(const Fleet& fleet, const FleetGpu& gpu);

/// "+60.0%", of a ratio of 1.6.
std::string deviation(double ratio);

/// "10.0%", or "none" where too few are there to judge.
std::string threshold_phrase(const FleetCase& one);

/// "rank 3 on node0005".
std::string missing_name(const MissingRank& rank);

/// Tables within the terminal's width, prose within 80 columns; the list of nodes to exclude is
/// never broken.
std::string fleet_text(const Fleet& fleet, BackendKind backend, const RenderOptions& options = {});

std::string fleet_markdown(const Fleet& fleet, BackendKind backend);

/// A GPU and case a test: slow failed, not judged was skipped. Failures of nodes and missing ranks
/// failed.
std::vector<JunitCase> junit_cases(const Fleet& fleet, BackendKind backend);

}  // namespace mgpu
