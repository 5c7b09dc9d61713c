// SPDX-License-Identifier: MIT
// One rank's part in a run of several: which devices are its own, when a case starts, and where the
// results of all come together. Knows no MPI, and measures nothing.
#pragma once

#include "model/fleet.hpp"
#include "outputs.hpp"
#include "rank_state.hpp"
#include "team.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mgpu {

/// How long a rank may be silent: twice what one step may take, in seconds, and five seconds; 0:
/// for ever.
Nanos patience_with(double timeout);

/// Rank 0 hears of everything, decides, and writes; the others send and wait for its word. Waiting
/// ends when a stop is requested, and for a rank that has been silent for too long. For the thread
/// that made it, unless a member says otherwise.
class Ranks {
 public:
  /// `asked` and `console` must outlive it.
  Ranks(Team& team, const Request& asked, std::string host, const Console& console, Nanos patience);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Opens the files of the report of all, on rank 0. Throws Error, usage where the request makes
  /// no sense for several ranks.
  void open();

  /// What this rank runs by itself: its own files are those with %r in their names.
  const Request& request() const { return own_; }

  /// Where that run's bytes go: nowhere, but for messages; those of other ranks rank 0 prints. To
  /// leave by it, from any thread, has rank 0 write what it has.
  const Console& console() const { return console_; }

  /// The report of that run as it grows, which must outlive this; `end` is to end it early.
  void observe(const Report& own, std::function<void()> end);

  int rank() const { return team_.rank(); }
  int size() const { return team_.size(); }
  int local_size() const { return team_.local_size(); }  ///< of this host

  /// This rank's part of the devices that it sees. Blocking, until all ranks have told theirs.
  /// Throws Error{unavailable} where ranks of one host see different devices, and share some.
  Share share(const Machine& machine, const std::stop_token& stop);

  /// Blocking, until every rank is about to sample the case at this position of the plan, or has
  /// done with it.
  void ready(std::size_t position, const std::stop_token& stop);

  /// Now and then between two steps: this rank is not stuck.
  void alive();

  /// A case has ended: `one` is a report of it alone.
  void add(const Report& one);

  /// The same of a case that does not return, while the thread of this object hangs in it.
  void add_stuck(const Report& one);

  /// Has rank 0 write what it has in less than half a second, for launchers kill soon after a
  /// signal. From any thread; does not block.
  void interrupt(int signal);

  /// Writes the report of all on rank 0 and gives the exit code, which is the same for each.
  /// Blocking, until all ranks have ended; after a signal not at all.
  int finish(const std::stop_token& stop);

  /// The same where the run could not start. On rank 0 it ends all others too.
  int fail(const Error& error, const std::stop_token& stop);

 private:
  enum class Word : char;

  bool first() const { return team_.rank() == 0; }
  void look_around();
  void tell(Word word, const std::string& text = "");
  void tell_all(Word word, const std::string& text = "");
  void heed(int from, Word word, const std::string& text);
  void advance();
  void pump();
  template <class Condition>
  void wait(const std::stop_token& stop, Condition reached);
  void notice_silence();
  int end(const std::stop_token& stop);
  void take(const std::string& lines, RankState& peer);
  Report whole(int code) const;
  enum class Stage { early, last };
  int publish(int code, Stage stage);

  Team& team_;
  const Request& asked_;
  const std::string host_;
  const Console& outer_;
  Request own_;
  Console console_;
  const Report* report_ = nullptr;  // of this rank's own run
  std::function<void()> end_ = [] {};
  const Nanos patience_;              // with a silent rank; 0: for ever
  Nanos told_alive_ = 0, heard_ = 0;  // when; of rank 0

  std::string complaints_;  // of others than rank 0, for its ears
  std::optional<Dealt> dealt_;
  std::size_t ready_ = 0, released_ = 0;  // cases that may be sampled, counted from the first
  std::optional<int> code_;
  bool forsaken_ = false;  // by a rank that is gone, so nobody waits for all
  bool ending_ = false;    // its own run is over

  // Of rank 0, and under the mutex.
  std::mutex mutex_;
  std::condition_variable written_;
  std::vector<RankState> peers_;  // this one included
  FleetBuilder fleet_;
  Report around_;  // what surrounds the fleet in its document
  Outputs outputs_;
  std::optional<ErrorInfo> unwritten_;  // the first output that could not be written
  bool published_ = false, printed_ = false;
  std::thread publisher_;
};

}  // namespace mgpu
