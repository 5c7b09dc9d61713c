// SPDX-License-Identifier: MIT
// The results of many nodes put together, and the GPUs among them that are slow. Reads no file,
// renders nothing.
#pragma once

#include "model/fleet_result.hpp"
#include "model/host_list.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mgpu {

struct Report;

/// Takes results node by node and keeps only what a fleet needs of them.
class FleetBuilder {
 public:
  /// Of `kind` trials. GPUs are told apart by host and UUID, devices without one by host, rank and
  /// ordinal. Results of one case of one GPU are rounds: the least minimum, the median of the
  /// medians, the greatest maximum. Throws Error{usage} for a time that cannot be one.
  void add(const Report& report);

  /// A node that fell silent, or ended as no node should: `why` is a failure of it, told once. An
  /// empty `host` is nobody's, and changes nothing.
  void failed(const std::string& host, const std::string& why);

  /// Of a run of several ranks: one that did not report to the end. Whose fault that is it does not
  /// say.
  void missing(MissingRank rank) { missing_.push_back(std::move(rank)); }

  /// `floor` in per cent, see find_outliers.
  Fleet finish(double floor) const;

 private:
  struct Seen {
    FleetGpu gpu;
    std::vector<double> medians;
  };
  // Number of the case, host, UUID; rank and ordinal where there is none.
  using Id = std::tuple<std::size_t, std::string, std::string, int, int>;

  static Id id_of(std::size_t number, const FleetGpu& gpu);
  std::size_t number_of(const std::string& key, const FleetCase& one);

  std::vector<FleetCase> cases_;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;  // by key and model
  std::map<Id, Seen> gpus_;
  std::map<std::string, FleetNode, HostOrder> nodes_;
  std::vector<MissingRank> missing_;
};

}  // namespace mgpu
