// SPDX-License-Identifier: MIT
// The processes that a launcher started together, and messages between them. Nothing but team.cpp
// knows MPI, and nobody but Ranks knows a team.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace mgpu {

struct Message {
  int from = 0;
  std::string text;
};

/// All members are for one thread. What one rank sends to another arrives in the order it was sent.
class Team {
 public:
  virtual ~Team() = default;

  virtual int rank() const = 0;  ///< of this process, from 0
  virtual int size() const = 0;
  virtual int local_size() const = 0;  ///< ranks on this host

  /// Takes the text and returns at once; it goes out during later calls.
  virtual void send(int to, std::string text) = 0;

  /// What has arrived, if anything has. Does not block.
  virtual std::optional<Message> receive() = 0;

  /// Waits until all that was sent has gone out, and for the other ranks to leave. Without it a
  /// launcher takes this process' end for a failure, and ends the others.
  virtual void leave() = 0;
};

using Join = std::function<std::unique_ptr<Team>()>;

/// The team that the launcher of this process has made; null where this build has no MPI. Blocking,
/// until all ranks have started.
std::unique_ptr<Team> join_team();

}  // namespace mgpu
