// SPDX-License-Identifier: MIT
// Peer access between devices: enabled before anything is allocated, and believed only once bytes
// have crossed both ways unharmed.
#pragma once

#include "backend/backend.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace mgpu {

class Peers {
 public:
  explicit Peers(Backend& backend) : backend_(backend) {}

  /// Makes `device` able to access the memory of `peer`, and proves it with a verified copy each
  /// way; once a pair, each time a run. Both are open and nothing is allocated. Nothing, or why it
  /// cannot be had: then the pair is not enabled. Error{unavailable} is what the driver refuses,
  /// Error{verification} what it grants and gets wrong. Blocking.
  std::optional<Error> enable(int device, int peer);

  /// Takes it back where it was enabled.
  void disable(int device, int peer);

 private:
  std::optional<Error> probe(int device, int peer);

  Backend& backend_;
  std::map<std::pair<int, int>, std::optional<Error>> known_;
};

}  // namespace mgpu
