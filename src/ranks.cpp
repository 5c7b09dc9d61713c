// SPDX-License-Identifier: MIT
#include "ranks.hpp"

#include "file_names.hpp"
#include "run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

namespace mgpu {
namespace {

using namespace std::chrono_literals;

// Short against a sample of anything worth measuring, and long enough to leave the CPU to ranks
// that share it.
constexpr auto between_looks = 50us;
constexpr auto between_looks_at_end = 1ms;  // when others still sample
constexpr Nanos between_signs = 1'000'000'000;
// After a signal each rank has this long to tell what it has, and rank 0 then writes. mpirun kills
// a second after its SIGTERM, or as soon as all ranks but one have left: so those wait for rank 0.
constexpr auto last_words = 300ms, until_written = 400ms, lingering = 700ms;

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string complaint(std::string_view message) {
  return fmt::format("mgpu: error: {}\n", message);
}

}  // namespace

// What ranks say to each other, and what the text is about.
enum class Ranks::Word : char {
  sees = 'd',      // host and devices, a line each
  dealt = 's',     // index and count, and why there is none
  ready = 'r',     // to sample so many cases
  released = 'g',  // all are
  ended = 'c',     // a case: its line of JSON
  alive = 'a',
  done = 'e',  // complete, code and kind of error; its message; complaints
  code = 'x',  // of all, and whether a rank is gone
};

Nanos patience_with(double timeout) {
  return timeout > 0 ? to_nanos(2 * timeout + 5) : 0;
}

Ranks::Ranks(Team& team, const Request& asked, std::string host, const Console& console,
             Nanos patience)
    : team_(team),
      asked_(asked),
      host_(std::move(host)),
      outer_(console),
      own_(asked),
      console_(console),
      patience_(patience),
      heard_(steady_now()),
      outputs_(asked, console, [this](const Error& error) {
        complain(outer_, complaint(error.what()));
        if (!unwritten_) unwritten_ = ErrorInfo{error.kind, error.what(), std::nullopt};
      }) {
  std::erase_if(own_.outputs, [&](const OutputSpec& spec) {
    return !names_rank(spec.path) && !(own_.dry_run && first());
  });
  expand_names(own_, team_.rank(), host_);
  if (!own_.dry_run || !first()) {
    console_.out = [](std::string_view) { return 0; };
    own_.format = Format::text;
  }
  console_.leave = [this](int code) {
    if (first()) {
      const std::lock_guard lock(mutex_);
      publish(code, Stage::last);
    } else {
      outer_.err(complaints_);
    }
    outer_.leave(code);
  };
  if (first()) {
    peers_.resize(static_cast<std::size_t>(team_.size()));
    for (RankState& peer : peers_) peer.heard = heard_;
    peers_[0].host = host_;
    return;
  }
  own_.quiet = true;  // rank 0 has the same to note
  console_.err = [this](std::string_view text) { complaints_ += text; };
}

Ranks::~Ranks() {
  if (publisher_.joinable()) publisher_.join();
}

void Ranks::open() {
  for (const auto& [path, option] :
       {std::pair{&asked_.resume, "--resume"}, std::pair{&asked_.timeline, "--timeline"}})
    if (!path->empty() && !names_rank(*path))
      throw Error(ErrorKind::usage,
                  fmt::format("{} '{}' would be one file of {} ranks; put %r into its name", option,
                              *path, team_.size()));
  std::vector<OutputSpec> shared;
  for (const OutputSpec& spec : asked_.outputs) {
    if (names_rank(spec.path)) continue;
    if (!is_for_stdout(spec.format) && spec.format != Format::xml)
      throw Error(ErrorKind::usage,
                  fmt::format("--output '{}': the report of several ranks has no {}; put %r into "
                              "its name for one of each rank",
                              spec.path, name(spec.format)));
    shared.push_back({spec.format, expanded(spec.path, 0, host_)});
  }
  if (first() && !asked_.dry_run) outputs_.open(shared);
}

void Ranks::observe(const Report& own, std::function<void()> end) {
  report_ = &own;
  end_ = std::move(end);
  look_around();
}

void Ranks::look_around() {
  const std::lock_guard lock(mutex_);
  around_.tool_version = report_->tool_version;
  around_.features = report_->features;
  around_.command = report_->command;
  around_.started = report_->started;
  around_.warnings = report_->warnings;
  around_.machine.backend = report_->machine.backend;
  around_.machine.host = report_->machine.host;
  around_.machine.driver = report_->machine.driver;
  around_.machine.environment = report_->machine.environment;
}

void Ranks::tell(Word word, const std::string& text) {
  if (first())
    heed(0, word, text);
  else
    team_.send(0, static_cast<char>(word) + text);
}

void Ranks::tell_all(Word word, const std::string& text) {
  for (int rank = 1; rank < team_.size(); ++rank) team_.send(rank, static_cast<char>(word) + text);
}

void Ranks::heed(int from, Word word, const std::string& text) {
  if (!first()) {
    heard_ = steady_now();
    std::istringstream in(text);
    if (word == Word::released) in >> released_;
    if (word == Word::dealt) {
      dealt_.emplace();
      in >> dealt_->share.index >> dealt_->share.count >> std::ws;
      std::getline(in, dealt_->refusal);
    }
    if (word == Word::code && !code_) {
      in >> code_.emplace() >> forsaken_;
      if (!ending_) end_();
    }
    return;
  }
  const std::lock_guard lock(mutex_);
  RankState& peer = peers_[static_cast<std::size_t>(from)];
  peer.heard = steady_now();
  if (peer.ended) return;  // it was given up
  switch (word) {
    case Word::sees: {
      peer.seen.emplace();
      std::istringstream in(text);
      std::getline(in, peer.seen->host);
      for (std::string device; std::getline(in, device);) peer.seen->devices.push_back(device);
      peer.host = peer.seen->host;
      break;
    }
    case Word::ready:
      std::istringstream(text) >> peer.ready;
      break;
    case Word::ended:
      take(text, peer);
      break;
    case Word::done: {
      peer.ended = true;
      std::istringstream in(text);
      int kind = -1;
      std::string message;
      in >> peer.complete >> peer.code >> kind >> std::ws;
      std::getline(in, message);
      if (kind >= 0) peer.error = ErrorInfo{static_cast<ErrorKind>(kind), message, std::nullopt};
      std::getline(in, peer.complaints, '\0');
      break;
    }
    default:
      break;
  }
  advance();
}

void Ranks::take(const std::string& lines, RankState& peer) {
  std::vector<std::string> notes;
  for (const Report& one : read_reports(lines, "a rank's result", notes)) {
    fleet_.add(one);
    peer.last_case = one.cases.front().key;
  }
  outputs_.append(lines);
}

// What rank 0 decides as soon as it knows enough.
void Ranks::advance() {
  const auto all = [&](auto holds) {
    return std::ranges::all_of(peers_,
                               [&](const RankState& peer) { return peer.ended || holds(peer); });
  };
  if (!dealt_ && all([](const RankState& peer) { return peer.seen.has_value(); })) {
    std::vector<std::optional<Seen>> seen;
    for (const RankState& peer : peers_) seen.push_back(peer.seen);
    const std::vector<Dealt> dealt = deal(seen);
    dealt_ = dealt[0];
    for (std::size_t rank = 1; rank < dealt.size(); ++rank)
      team_.send(static_cast<int>(rank),
                 fmt::format("{}{} {} {}", static_cast<char>(Word::dealt), dealt[rank].share.index,
                             dealt[rank].share.count, dealt[rank].refusal));
  }
  std::optional<std::size_t> least;
  for (const RankState& peer : peers_)
    if (!peer.ended) least = std::min(least.value_or(peer.ready), peer.ready);
  if (!least || *least <= released_) return;
  released_ = *least;
  tell_all(Word::released, std::to_string(released_));
}

void Ranks::pump() {
  while (const auto message = team_.receive())
    heed(message->from, static_cast<Word>(message->text.front()), message->text.substr(1));
}

template <class Condition>
void Ranks::wait(const std::stop_token& stop, Condition reached) {
  for (;;) {
    alive();
    if (reached() || code_ || stop.stop_requested()) return;
    notice_silence();
    std::this_thread::sleep_for(ready_ > released_ ? between_looks : between_looks_at_end);
  }
}

// A launcher mostly ends a run of which a rank has died, but not every one does, and none knows of
// a rank that hangs.
void Ranks::notice_silence() {
  if (patience_ == 0) return;
  const Nanos now = steady_now();
  const auto silence = [&](Nanos since) {
    return fmt::format("has been silent for {:.3g} s", static_cast<double>(now - since) / 1e9);
  };
  if (!first()) {
    if (now - heard_ < patience_) return;
    complaints_ += complaint("rank 0 " + silence(heard_));
    code_ = exit_code(ErrorKind::timeout);
    forsaken_ = true;
    if (!ending_) end_();
    return;
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
    RankState& peer = peers_[rank];
    if (peer.ended || now - peer.heard < patience_) continue;
    forsaken_ = peer.ended = true;
    const std::string message = fmt::format("rank {} {}", rank, silence(peer.heard));
    peer.error = ErrorInfo{ErrorKind::timeout, message, std::nullopt};
    peer.complaints = complaint(message);
    peer.code = exit_code(ErrorKind::timeout);
    fleet_.missing({static_cast<int>(rank), peer.host, peer.last_case});
    fleet_.failed(peer.host, message);
  }
  advance();
}

void Ranks::alive() {
  pump();
  const Nanos now = steady_now();
  if (now - told_alive_ < between_signs) return;
  told_alive_ = now;
  if (first())
    tell_all(Word::alive);
  else
    tell(Word::alive);
}

Share Ranks::share(const Machine& machine, const std::stop_token& stop) {
  look_around();
  std::string seen = host_;
  for (const Device& device : machine.devices)  // CUDA numbers what a process sees from 0
    seen += '\n' + (device.uuid.empty() ? std::to_string(device.ordinal) : device.uuid);
  tell(Word::sees, seen);
  wait(stop, [&] { return dealt_.has_value(); });
  if (!dealt_) return {};
  if (!dealt_->refusal.empty()) throw Error(ErrorKind::unavailable, dealt_->refusal);
  return dealt_->share;
}

void Ranks::ready(std::size_t position, const std::stop_token& stop) {
  ready_ = position + 1;
  tell(Word::ready, std::to_string(ready_));
  wait(stop, [&] { return released_ >= ready_; });
}

void Ranks::add(const Report& one) {
  tell(Word::ended, render(Format::jsonl, one));
  pump();
  if (!first() || !outputs_.updated()) return;
  look_around();
  const std::lock_guard lock(mutex_);
  outputs_.update(whole(0));
}

void Ranks::add_stuck(const Report& one) {
  if (!first()) return;  // its thread is the only one that may send
  const std::lock_guard lock(mutex_);
  take(render(Format::jsonl, one), peers_[0]);
}

void Ranks::interrupt(int signal) {
  if (!first() || publisher_.joinable()) return;
  publisher_ = std::thread([this, signal] {
    std::unique_lock lock(mutex_);
    if (!written_.wait_for(lock, until_written, [&] { return published_; }))
      publish(128 + signal, Stage::early);
  });
}

int Ranks::finish(const std::stop_token& stop) {
  look_around();
  const std::optional<ErrorInfo>& error = report_->error;
  tell(Word::done, fmt::format("{:d} {} {}\n{}\n{}", report_->complete, report_->exit_code,
                               error ? static_cast<int>(error->kind) : -1,
                               error ? one_line(error->message) : ".", complaints_));
  return end(stop);
}

int Ranks::fail(const Error& error, const std::stop_token& stop) {
  console_.err(complaint(error.what()));
  const int code = exit_code(error.kind);
  if (first()) {
    tell_all(Word::code, fmt::format("{} 0", code));
    team_.leave();
    return code;
  }
  tell(Word::done, fmt::format("0 {} {}\n{}\n{}", code, static_cast<int>(error.kind),
                               one_line(error.what()), complaints_));
  return end(stop);
}

int Ranks::end(const std::stop_token& stop) {
  ending_ = true;
  bool together = false;  // nobody leaves before all do: without it a launcher ends what is left
  if (!first()) {
    wait(stop, [] { return false; });  // for the code
    if (!code_) std::this_thread::sleep_for(lingering);
    together = code_ && !forsaken_;
    if (!together) outer_.err(complaints_);
  } else {
    const auto ended = [&] { return std::ranges::all_of(peers_, &RankState::ended); };
    wait(stop, ended);
    for (auto left = last_words; !ended() && left > 0ms; left -= between_looks_at_end) {
      std::this_thread::sleep_for(between_looks_at_end);
      pump();
    }
    together = !stop.stop_requested() && !forsaken_;
    const std::lock_guard lock(mutex_);
    int code = 0;
    for (const RankState& peer : peers_) code = graver(code, peer.code);
    code_ = publish(code, Stage::last);
    if (!stop.stop_requested()) tell_all(Word::code, fmt::format("{} {:d}", *code_, forsaken_));
  }
  if (together) team_.leave();
  return code_ ? *code_ : report_ ? report_->exit_code : exit_code(ErrorKind::runtime);
}

Report Ranks::whole(int code) const {
  Report all = around_;
  all.ended = utc_now();
  all.exit_code = code;
  complete_fleet(all, fleet_, peers_, own_.outlier);
  if (unwritten_) weigh(all, *unwritten_);
  return all;
}

// Under the mutex. What was printed stays; files tell the latest. Gives the exit code.
int Ranks::publish(int code, Stage stage) {
  if (!own_.dry_run) {
    outputs_.finish(whole(code), Outputs::Lines::cases);
    const Report report = whole(code);  // with what went wrong there
    if (!printed_ && (stage == Stage::last || has_result(report))) {
      outputs_.print_report(report);
      printed_ = true;
    }
  }
  if (!published_)
    for (const std::string& line : complaints_of(peers_)) complain(outer_, line + '\n');
  published_ = true;
  written_.notify_all();
  return unwritten_ ? graver(code, exit_code(unwritten_->kind)) : code;
}

}  // namespace mgpu
