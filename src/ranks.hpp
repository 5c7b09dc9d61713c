// SPDX-License-Identifier: MIT
// One rank's part in a run of several: which devices are its own, when a case starts, and where the
// results of all come together. Knows no MPI, and measures nothing.
#pragma once

#include "app.hpp"
#include "model/fleet.hpp"
#include "model/request.hpp"
#include "model/result.hpp"
#include "output.hpp"
#include "team.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mgpu {

/// Puts rank and host in the place of %r and %h in the names of files to write, and % for %%.
void expand_names(Request& request, int rank, std::string_view host);

/// Rank 0 hears of everything, decides, and writes; the others send and wait for its word. All
/// waiting ends when a stop is requested. For the thread that made it, but where a member says
/// else.
class Ranks {
 public:
  /// Opens the files of rank 0. Throws Error, usage where the request makes no sense for several.
  Ranks(Team& team, const Request& request, std::string host, const Console& console);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// What this rank runs by itself: its own files are those with %r in their names.
  const Request& request() const { return own_; }

  /// Where that run's bytes go: nowhere, but for messages; those of other ranks rank 0 prints. To
  /// leave by it, from any thread, has rank 0 write what it has.
  const Console& console() const { return console_; }

  /// The report of that run as it grows; it must outlive this.
  void observe(const Report& own);

  int rank() const { return team_.rank(); }
  int size() const { return team_.size(); }

  /// CPU devices that a host must have for each of its ranks to get one.
  int local_size() const { return team_.local_size(); }

  /// This rank's part of the devices that it sees. Blocking, until all ranks have told theirs.
  /// Throws Error{unavailable} where ranks of one host see different devices, and share some.
  Share share(const Machine& machine, const std::stop_token& stop);

  /// Blocking, until every rank is ready to sample its case, or has done with it.
  void ready(const std::stop_token& stop);

  /// A case has ended: `one` is a report of it alone.
  void add(const Report& one);

  /// From any thread, while the others may be in any call: rank 0 writes what it has. Launchers
  /// kill soon after a signal, so this does not wait for the running sample.
  void interrupt(int signal);

  /// Writes the report of all on rank 0 and gives the exit code, which is the same for each.
  /// Blocking, until all ranks have ended; after a signal not at all.
  int finish(const std::stop_token& stop);

 private:
  /// What rank 0 knows of one, itself included.
  struct Peer {
    std::string host;
    std::optional<std::string> devices;  ///< that it sees
    std::string last_case;
    std::string complaints;
    bool ended = false, complete = false;
    int ready = 0;  ///< cases
    int code = 0;
  };

  bool first() const { return team_.rank() == 0; }
  void keep_files(const Request& asked);
  void look_around();
  void tell(char what, const std::string& text = "");
  void heed(int from, char what, const std::string& text);
  void advance();
  void share_out();
  void pump();
  template <class Condition>
  void wait(const std::stop_token& stop, Condition reached);
  void attempt(const std::function<void()>& write);
  void update_files(const Report& report, bool at_end);
  void tell_complaints() const;
  Report whole(int code) const;
  int publish(int code);

  Team& team_;
  const std::string host_;
  const Console& outer_;
  const Format format_;  // of stdout
  Request own_;
  Console console_;
  const Report* report_ = nullptr;  // of this rank's own run
  const std::thread::id thread_ = std::this_thread::get_id();

  // Of every rank.
  std::string complaints_;             // of others than rank 0, for its ears
  std::optional<std::string> shared_;  // what rank 0 decided of the devices
  int ended_cases_ = 0, ready_ = 0, released_ = 0;
  std::optional<int> code_;

  // Of rank 0, and under the mutex.
  std::mutex mutex_;
  Report around_;  // what surrounds the fleet in its document
  bool published_ = false;
  std::vector<Output> outputs_;
  std::vector<Peer> peers_;
  FleetBuilder fleet_;
  std::string failure_;  // of an output, that was told last
};

}  // namespace mgpu
