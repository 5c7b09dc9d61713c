// SPDX-License-Identifier: MIT
// What a fleet of nodes takes for the same cases: by GPU, by case, by node. Finds nothing out.
#pragma once

#include "model/outliers.hpp"
#include "model/plan.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mgpu {

/// One GPU in one case. Times are its device times; where there are none and it copies alone, those
/// of the samples.
struct FleetGpu {
  std::string key;  ///< of the case
  std::string host;
  std::optional<int> rank;
  int ordinal = 0;
  std::string uuid, pci, name;
  Bytes bytes = 0;  ///< that it copies in a sample
  int rounds = 1;   ///< results of the same case that were put together
  std::optional<double> min_ns, max_ns;
  double median_ns = 0;
  double rate = 0;   ///< bytes of FleetCase::basis per second of median_ns
  double ratio = 1;  ///< of its time per byte to the fleet's median: 1.1 is a tenth longer
  std::optional<Outlier> outlier;
};

/// One case over all GPUs of a model.
struct FleetCase {
  std::string key;
  Case what;         ///< of the first node that had it
  std::string name;  ///< model of the GPUs
  Basis basis = Basis::moved;
  bool device_times = true;  ///< all of them; else some are of the samples
  std::size_t nodes = 0, gpus = 0;
  Bytes bytes = 0;  ///< the most that one of them copies; times below are of so many
  double min_ns = 0, p25_ns = 0, median_ns = 0, p75_ns = 0, max_ns = 0;  ///< of GPUs' medians
  double mad = 0;                   ///< median absolute deviation, as a share of the median
  std::optional<double> threshold;  ///< share beyond which one is an outlier; none: too few
};

/// One FleetCase on one node: of the medians of its GPUs.
struct FleetNodeCase {
  std::string key, name;
  std::size_t gpus = 0;
  double min_ns = 0, median_ns = 0, max_ns = 0;
};

struct FleetNode {
  std::string host;
  std::vector<int> ranks;             ///< ascending; empty where no launcher numbered them
  std::size_t gpus = 0;               ///< that copied
  std::size_t slow = 0;               ///< of these, those that are slow in some case
  std::vector<FleetNodeCase> cases;   ///< in the order of Fleet::cases
  std::vector<std::string> failures;  ///< each once: what failed, timed out or was cut short
};

/// One of several ranks that did not report to the end.
struct MissingRank {
  int rank = 0;
  std::string host;       ///< empty: it never said
  std::string last_case;  ///< key of the last one that it finished; empty: none
};

struct Fleet {
  double floor = 5;  ///< per cent
  std::vector<FleetNode> nodes;
  std::vector<FleetGpu> gpus;        ///< by case, node, rank and ordinal
  std::vector<FleetCase> cases;      ///< in order of their first appearance
  std::string exclude;               ///< host_list: those with a slow GPU or a failure
  std::vector<MissingRank> missing;  ///< by rank
};

}  // namespace mgpu
