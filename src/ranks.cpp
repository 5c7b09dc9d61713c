// SPDX-License-Identifier: MIT
#include "ranks.hpp"

#include "report/report.hpp"
#include "run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>
#include <utility>

namespace mgpu {
namespace {

// What ranks say to each other: one of these, and what it is about.
constexpr char devices_told = 'd', share_decided = 's', is_ready = 'r', released = 'g',
               case_ended = 'c', rank_ended = 'e', code_decided = 'x';

// Short against a sample of anything worth measuring, and long enough to leave the CPU to ranks
// that share it.
constexpr std::chrono::microseconds between_looks{50};

bool names_rank(std::string_view path) {
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (path[i] != '%') continue;
    if (path[++i] == 'r') return true;
  }
  return false;
}

std::string expanded(std::string_view path, int rank, std::string_view host) {
  std::string name;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char next = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (next == 'r')
      name += std::to_string(rank);
    else if (next == 'h')
      name += host;
    else if (next == '%')
      name += '%';
    else {
      name += path[i];
      continue;
    }
    ++i;
  }
  return name;
}

// Which devices those are, whatever a rank calls them: CUDA numbers what a rank sees from 0.
std::string identities(const Machine& machine) {
  std::vector<std::string> all;
  for (const Device& device : machine.devices)
    all.push_back(device.uuid.empty() ? std::to_string(device.ordinal) : device.uuid);
  return fmt::format("{}", fmt::join(all, "\n"));
}

std::set<std::string> lines_of(std::string_view text) {
  std::set<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string ranks_phrase(const std::vector<int>& ranks) {
  return ranks.size() == 1 ? fmt::format("rank {}", ranks.front())
                           : fmt::format("ranks {}", fmt::join(ranks, ", "));
}

}  // namespace

void expand_names(Request& request, int rank, std::string_view host) {
  const auto expand = [&](std::string& path) { path = expanded(path, rank, host); };
  for (OutputSpec& spec : request.outputs) expand(spec.path);
  for (std::string* path : {&request.timeline, &request.resume, &request.exclude_file})
    expand(*path);
}

Ranks::Ranks(Team& team, const Request& request, std::string host, const Console& console)
    : team_(team),
      host_(std::move(host)),
      outer_(console),
      format_(request.format),
      own_(request),
      console_(console) {
  keep_files(request);
  expand_names(own_, team_.rank(), host_);
  if (!own_.dry_run || !first()) {
    console_.out = [](std::string_view) { return 0; };
    own_.format = Format::text;
  }
  console_.leave = [this](int code) {
    if (first())
      publish(code);
    else
      outer_.err(complaints_);
    outer_.leave(code);
  };
  if (first()) {
    peers_.resize(static_cast<std::size_t>(team_.size()));
    peers_[0].host = host_;
    return;
  }
  own_.quiet = true;  // rank 0 has the same to note
  console_.err_is_terminal = false;
  console_.err = [this](std::string_view text) { complaints_ += text; };
}

// The report of all is rank 0's, and so are the files that name no rank.
void Ranks::keep_files(const Request& asked) {
  for (const auto& [path, option] :
       {std::pair{&asked.resume, "--resume"}, std::pair{&asked.timeline, "--timeline"}})
    if (!path->empty() && !names_rank(*path))
      throw Error(ErrorKind::usage,
                  fmt::format("{} '{}' would be one file of {} ranks; put %r into its name", option,
                              *path, team_.size()));
  own_.outputs.clear();
  for (const OutputSpec& spec : asked.outputs) {
    if (names_rank(spec.path) || (asked.dry_run && first())) {
      own_.outputs.push_back(spec);
      continue;
    }
    if (!is_for_stdout(spec.format))
      throw Error(ErrorKind::usage,
                  fmt::format("--output '{}': the report of several ranks has no {}; put %r into "
                              "its name for one of each rank",
                              spec.path, name(spec.format)));
    if (first() && !asked.dry_run)
      outputs_.emplace_back(OutputSpec{spec.format, expanded(spec.path, 0, host_)}, asked.append,
                            asked.force);
  }
}

void Ranks::observe(const Report& own) {
  report_ = &own;
  look_around();
}

void Ranks::look_around() {
  const std::lock_guard lock(mutex_);
  around_.kind = ReportKind::fleet;
  around_.tool_version = report_->tool_version;
  around_.features = report_->features;
  around_.command = report_->command;
  around_.started = report_->started;
  around_.ended = report_->ended;
  around_.warnings = report_->warnings;
  around_.error = report_->error;
  around_.machine.backend = report_->machine.backend;
  around_.machine.host = report_->machine.host;
  around_.machine.driver = report_->machine.driver;
  around_.machine.environment = report_->machine.environment;
}

void Ranks::tell(char what, const std::string& text) {
  if (first())
    heed(0, what, text);
  else
    team_.send(0, what + text);
}

void Ranks::heed(int from, char what, const std::string& text) {
  if (what == share_decided) shared_ = text;
  if (what == released) ++released_;
  if (what == code_decided) code_ = number(text);
  if (!first()) return;
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  if (what == devices_told) {
    const auto end = text.find('\n');
    peer.host = text.substr(0, end);
    peer.devices = end == text.npos ? "" : text.substr(end + 1);
  }
  if (what == is_ready) ++peer.ready;
  if (what == case_ended) {
    std::vector<std::string> notes;
    for (const Report& one : read_reports(text, fmt::format("rank {}", from), notes)) {
      fleet_.add(one);
      peer.last_case = one.cases.front().key;
    }
    for (Output& output : outputs_)
      if (output.format() == Format::jsonl) attempt([&] { output.write(text); });
  }
  if (what == rank_ended) {
    peer.ended = true;
    peer.complete = text.front() == '1';
    peer.code = number(std::string_view(text).substr(1));
    const auto end = text.find('\n');
    peer.complaints = text.substr(end + 1);
  }
  advance();
}

// What rank 0 decides as soon as it knows enough.
void Ranks::advance() {
  const auto all = [&](auto holds) {
    return std::ranges::all_of(peers_, [&](const Peer& peer) { return peer.ended || holds(peer); });
  };
  if (!shared_ && all([](const Peer& peer) { return peer.devices.has_value(); })) share_out();
  if (std::ranges::all_of(peers_, &Peer::ended)) return;
  if (!all([&](const Peer& peer) { return peer.ready > released_; })) return;
  ++released_;
  for (int rank = 1; rank < team_.size(); ++rank)
    if (!peers_[static_cast<std::size_t>(rank)].ended) team_.send(rank, std::string(1, released));
}

// Ranks of a host that see the same devices share them; those that see each its own, as where the
// launcher bound them, use all that they see.
void Ranks::share_out() {
  std::map<std::string, std::vector<int>> hosts;
  for (int rank = 0; rank < team_.size(); ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer.devices) hosts[peer.host].push_back(rank);
  }
  for (const auto& [host, ranks] : hosts) {
    const auto devices_of = [&](int rank) {
      return lines_of(*peers_[static_cast<std::size_t>(rank)].devices);
    };
    std::set<std::string> together;
    std::size_t sum = 0;
    bool same = true;
    for (const int rank : ranks) {
      const auto devices = devices_of(rank);
      together.insert(devices.begin(), devices.end());
      sum += devices.size();
      same = same && devices == devices_of(ranks.front());
    }
    const bool apart = ranks.size() == 1 || together.size() == sum;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::string word = apart  ? "0 1"
                               : same ? fmt::format("{} {}", i, ranks.size())
                                      : fmt::format(
                                            "ranks {} on {} see different devices, and "
                                            "share some: let all of a node see the same, "
                                            "or each its own",
                                            fmt::join(ranks, ", "), host);
      if (ranks[i] == 0)
        shared_ = word;
      else
        team_.send(ranks[i], share_decided + word);
    }
  }
  if (!shared_) shared_ = "0 1";
}

void Ranks::pump() {
  while (const auto message = team_.receive())
    heed(message->from, message->text.front(), message->text.substr(1));
}

template <class Condition>
void Ranks::wait(const std::stop_token& stop, Condition reached) {
  for (pump(); !reached() && !stop.stop_requested(); pump())
    std::this_thread::sleep_for(between_looks);
}

Share Ranks::share(const Machine& machine, const std::stop_token& stop) {
  tell(devices_told, host_ + "\n" + identities(machine));
  wait(stop, [&] { return shared_.has_value(); });
  if (!shared_) return {};
  const auto blank = shared_->find(' ');
  if (shared_->front() == 'r') throw Error(ErrorKind::unavailable, *shared_);
  return {number(*shared_), number(std::string_view(*shared_).substr(blank + 1))};
}

void Ranks::ready(const std::stop_token& stop) {
  ready_ = ended_cases_ + 1;
  tell(is_ready);
  wait(stop, [&] { return released_ >= ready_; });
}

void Ranks::add(const Report& one) {
  // The watchdog's thread tells of a case that hangs; MPI is the other thread's.
  const bool here = std::this_thread::get_id() == thread_;
  if (first() || here) tell(case_ended, render(Format::jsonl, one));
  ++ended_cases_;
  if (!here) return;
  look_around();
  if (ready_ < ended_cases_) {  // it failed before it could sample
    ready_ = ended_cases_;
    tell(is_ready);
  }
  pump();
  if (!first()) return;
  const std::lock_guard lock(mutex_);
  update_files(whole(0), false);
}

void Ranks::interrupt(int signal) {
  if (first()) publish(128 + signal);
}

int Ranks::finish(const std::stop_token& stop) {
  look_around();
  tell(rank_ended,
       fmt::format("{}{}\n{}", report_->complete ? 1 : 0, report_->exit_code, complaints_));
  if (!first()) {
    wait(stop, [&] { return code_.has_value(); });
    if (!code_) {
      outer_.err(complaints_);
      return report_->exit_code;
    }
  } else {
    wait(stop, [&] { return std::ranges::all_of(peers_, &Peer::ended); });
    code_ = 0;
    for (const Peer& peer : peers_) code_ = graver(*code_, peer.code);
    code_ = publish(*code_);
    if (stop.stop_requested()) return *code_;
    for (int rank = 1; rank < team_.size(); ++rank)
      team_.send(rank, code_decided + std::to_string(*code_));
  }
  team_.leave();
  return *code_;
}

Report Ranks::whole(int code) const {
  Report all = around_;
  all.exit_code = code;
  FleetBuilder fleet = fleet_;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    all.complete = all.complete && peer.ended && peer.complete;
    // Rank 0 is the one that reports.
    if (!peer.ended && rank > 0) fleet.missing({static_cast<int>(rank), peer.host, peer.last_case});
    if (!all.error && peer.ended && peer.code > 0 && peer.code < 128)
      all.error = ErrorInfo{static_cast<ErrorKind>(peer.code - 1), peer.complaints, std::nullopt};
  }
  all.fleet = fleet.finish(own_.outlier);
  return all;
}

// An output that cannot be written costs neither the other outputs nor the rest of the run.
void Ranks::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (failure_ != error.what()) complain(outer_, fmt::format("mgpu: error: {}\n", error.what()));
    failure_ = error.what();
  }
}

void Ranks::update_files(const Report& report, bool at_end) {
  if (own_.dry_run) return;
  for (Output& output : outputs_)
    if (output.format() != Format::jsonl && (output.incremental() || at_end))
      attempt([&] { output.write(rendered(output.format(), report, {})); });
}

// Each message once, with the ranks that have it.
void Ranks::tell_complaints() const {
  std::map<std::string, std::vector<int>> told;
  for (std::size_t rank = 1; rank < peers_.size(); ++rank)
    for (const std::string& line : lines_of(peers_[rank].complaints))
      told[line].push_back(static_cast<int>(rank));
  for (const auto& [line, ranks] : told)
    complain(outer_, fmt::format("{} ({})\n", line, ranks_phrase(ranks)));
}

int Ranks::publish(int code) {
  const std::lock_guard lock(mutex_);
  const bool again = std::exchange(published_, true);
  if (!own_.dry_run) {
    const Report report = whole(code);
    RenderOptions options;
    options.color = wants_color(own_, outer_);
    options.width = outer_.width;
    update_files(report, true);
    if (!again && (!report.fleet->nodes.empty() || format_ == Format::json))
      attempt([&] { print(outer_, rendered(format_, report, options)); });
  }
  if (!again) tell_complaints();
  return failure_.empty() ? code : graver(code, exit_code(ErrorKind::runtime));
}

}  // namespace mgpu
