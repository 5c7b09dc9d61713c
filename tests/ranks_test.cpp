// SPDX-License-Identifier: MIT
// Several ranks as threads of this process, each with simulated devices. What MPI itself does is
// tried by tests/mpi_test.sh.
#include "ranks.hpp"

#include "file_names.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// What ranks have sent to each other and not read yet.
struct Mail {
  std::mutex mutex;
  std::vector<std::deque<Message>> boxes;
  explicit Mail(int ranks) : boxes(static_cast<std::size_t>(ranks)) {}
};

class ThreadTeam : public Team {
 public:
  ThreadTeam(Mail& mail, int rank) : mail_(mail), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(mail_.boxes.size()); }
  int local_size() const override { return size(); }
  void send(int to, std::string text) override {
    const std::lock_guard lock(mail_.mutex);
    mail_.boxes.at(static_cast<std::size_t>(to)).push_back({rank_, std::move(text)});
  }
  std::optional<Message> receive() override {
    const std::lock_guard lock(mail_.mutex);
    auto& box = mail_.boxes.at(static_cast<std::size_t>(rank_));
    if (box.empty()) return std::nullopt;
    Message first = std::move(box.front());
    box.pop_front();
    return first;
  }
  void leave() override {}

 private:
  Mail& mail_;
  const int rank_;
};

/// What Open MPI's launcher sets.
struct Launcher {
  Launcher(int rank, int ranks) {
    setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
    setenv("OMPI_COMM_WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  }
  ~Launcher() {
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
  }
};

/// One command line on several ranks of one host.
struct Launch {
  std::vector<Simulation> ranks;

  std::vector<Outcome> operator()(const std::vector<std::string>& args) {
    const int count = static_cast<int>(ranks.size());
    const Launcher launcher(0, count);  // one environment for all; the team knows better
    Mail mail(count);
    std::vector<Outcome> outcomes(ranks.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        const auto place = static_cast<std::size_t>(rank);
        ranks[place].join = [&mail, rank] { return std::make_unique<ThreadTeam>(mail, rank); };
        outcomes[place] = ranks[place](args);
      });
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }
};

Launch launch(int ranks, int gpus) {
  Launch made;
  made.ranks.resize(static_cast<std::size_t>(ranks));
  for (Simulation& rank : made.ranks) rank.options.gpus = gpus;
  return made;
}

const std::vector<std::string> copy = {"copy", "--size", "1MiB/gpu", "--samples", "20", "--json"};

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

/// Rank 0 of a run whose other ranks are what the test sends in their names.
struct FirstRank {
  Mail mail;
  ThreadTeam team{mail, 0};
  Request request;
  Console console;
  std::string out, err;

  explicit FirstRank(int ranks) : mail(ranks) {
    request.format = Format::json;
    console.out = [this](std::string_view bytes) {
      out += bytes;
      return 0;
    };
    console.err = [this](std::string_view bytes) { err += bytes; };
  }
  void hear(int from, const std::string& text) { ThreadTeam(mail, from).send(0, text); }
  json report() const { return json::parse(out); }
};

/// The report of a rank's own run that SIGTERM ended.
Report terminated() {
  Report own;
  own.complete = false;
  own.exit_code = 143;
  return own;
}

std::vector<int> codes(const std::vector<Outcome>& outcomes) {
  std::vector<int> all;
  for (const Outcome& outcome : outcomes) all.push_back(outcome.code);
  return all;
}

}  // namespace

TEST_CASE("ranks of one host share its GPUs and give one report", "[ranks]") {
  const auto outcomes = launch(2, 4)(copy);
  CHECK(codes(outcomes) == std::vector{0, 0});
  CHECK(outcomes[1].out.empty());
  const json report = json::parse(outcomes[0].out);
  CHECK(report["kind"] == "fleet");
  CHECK(report["complete"] == true);
  REQUIRE(report["gpus"].size() == 4);
  std::vector<std::pair<int, int>> who;
  for (const json& gpu : report["gpus"]) who.emplace_back(gpu["rank"], gpu["ordinal"]);
  std::ranges::sort(who);
  CHECK(who == std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 2}, {1, 3}});
}

TEST_CASE("more ranks than GPUs end with 4 on every rank, and say so once", "[ranks]") {
  const auto outcomes = launch(3, 2)(copy);
  CHECK(codes(outcomes) == std::vector{4, 4, 4});
  CHECK_THAT(outcomes[0].err, ContainsSubstring("3 ranks of this host share 2 devices"));
  CHECK(std::ranges::count(outcomes[0].err, '\n') == 1);
  CHECK(outcomes[1].err.empty());
  CHECK(json::parse(outcomes[0].out)["error"]["kind"] == "unavailable");
}

TEST_CASE("on CPUs each rank gets a device of its own", "[ranks]") {
  const auto outcomes = launch(4, 2)(with(copy, {"--backend", "host"}));
  CHECK(codes(outcomes) == std::vector{0, 0, 0, 0});
  CHECK(json::parse(outcomes[0].out)["gpus"].size() == 4);
}

TEST_CASE("a slow rank is named", "[ranks]") {
  Launch four = launch(4, 4);
  four.ranks[2].options.scale = {160};
  const auto outcomes = four({"copy", "--size", "8MiB/gpu", "--samples", "20", "--json"});
  const json report = json::parse(outcomes[0].out);
  REQUIRE(report["gpus"].size() == 4);
  for (const json& gpu : report["gpus"]) {
    INFO(gpu);
    CHECK((gpu["outlier"] == "slow") == (gpu["rank"] == 2));
  }
}

TEST_CASE("what fails on one rank is every rank's exit code", "[ranks]") {
  Launch two = launch(2, 2);
  Fault flip;
  flip.act = Fault::Act::flip;
  flip.nth = 2 + 20 + 20 + 1;  // the pass that is checked last
  two.ranks[1].faults = {flip};
  const auto outcomes = two(copy);
  CHECK(codes(outcomes) == std::vector{6, 6});
  const json report = json::parse(outcomes[0].out);
  CHECK(report["exit_code"] == 6);
  CHECK(report["error"]["kind"] == "verification");
  CHECK_THAT(outcomes[0].err, ContainsSubstring("(rank 1)"));
}

TEST_CASE("a rank that finds no GPU does not keep the others waiting", "[ranks]") {
  for (const std::size_t without : {0, 2}) {
    Launch three = launch(3, 4);
    three.ranks[without].options.gpus = 0;
    const auto outcomes = three(copy);
    CHECK(codes(outcomes) == std::vector{3, 3, 3});
    CHECK(json::parse(outcomes[0].out)["gpus"].size() == 4);
  }
}

TEST_CASE("ranks go through a sweep together, also where a case fails on one", "[ranks]") {
  Launch two = launch(2, 2);
  Fault fault;
  fault.call = Fault::Call::allocate;
  fault.kind = ErrorKind::memory;
  two.ranks[1].faults = {fault};
  const auto outcomes = two({"sweep", "--size", "1MiB,2MiB,4MiB", "--samples", "5", "--json"});
  CHECK(codes(outcomes) == std::vector{5, 5});
  const json report = json::parse(outcomes[0].out);
  CHECK(report["distribution"].size() == 3);
  CHECK(report["gpus"].size() == 5);
}

TEST_CASE("what a resumed sweep has kept is in the report of all", "[ranks]") {
  const TemporaryDirectory directory;
  const std::string own = directory.file("%r.jsonl");
  const auto sweep = [&](const std::string& sizes) {
    return launch(2, 2)({"sweep", "--size", sizes, "--samples", "5", "--resume", own, "--json"});
  };
  CHECK(codes(sweep("1MiB,2MiB")) == std::vector{0, 0});
  // Of rank 1 the first case is lost: ranks then have different cases to measure.
  const std::string lines = contents(directory.file("1.jsonl"));
  std::ofstream(directory.file("1.jsonl")) << lines.substr(lines.find('\n') + 1);
  const auto outcomes = sweep("1MiB,2MiB,4MiB");
  CHECK(codes(outcomes) == std::vector{0, 0});
  const json report = json::parse(outcomes[0].out);
  CHECK(report["gpus"].size() == 6);
  CHECK(report["distribution"].size() == 3);
}

TEST_CASE("results are added behind nothing but results", "[ranks]") {
  const TemporaryDirectory directory;
  const std::string precious = directory.file("precious.jsonl");
  std::ofstream(precious) << "one line without an end";
  const auto outcomes = launch(2, 2)(with(copy, {"--append", "-o", precious}));
  CHECK(codes(outcomes) == std::vector{2, 2});
  const std::string result = directory.file("result.json");
  CHECK(Simulation{}(with(copy, {"-o", result})).code == 0);
  for (const std::string command : {"merge", "show"})
    CHECK(Simulation{}({command, result, "--append", "-o", precious}).code == 2);
  CHECK(contents(precious) == "one line without an end");
}

TEST_CASE("files named by rank are each rank's own, the others rank 0's", "[ranks]") {
  const TemporaryDirectory directory;
  const auto outcomes =
      launch(2, 2)(with(copy, {"-o", directory.file("own-%r-100%%.json"), "-o",
                               directory.file("all.json"), "-o", directory.file("cases.jsonl")}));
  CHECK(codes(outcomes) == std::vector{0, 0});
  CHECK(directory.files() == 4);
  CHECK(json::parse(contents(directory.file("own-1-100%.json")))["kind"] == "trials");
  CHECK(json::parse(contents(directory.file("own-0-100%.json")))["cases"].size() == 1);
  CHECK(json::parse(contents(directory.file("all.json")))["kind"] == "fleet");
  const std::string lines = contents(directory.file("cases.jsonl"));
  CHECK(std::ranges::count(lines, '\n') == 2);

  // They are what merge takes, and it finds the same.
  Simulation alone;
  const json merged = json::parse(alone({"merge", "--json", directory.file("cases.jsonl")}).out);
  CHECK(merged["gpus"] == json::parse(outcomes[0].out)["gpus"]);
}

TEST_CASE("what would be one file of many ranks is refused", "[ranks]") {
  const TemporaryDirectory directory;
  for (const auto& [option, file] :
       {std::pair{"--resume", "run.jsonl"}, {"--timeline", "run.json"}, {"-o", "run.svg"}}) {
    const std::string command = option == std::string("--resume") ? "sweep" : "copy";
    const auto outcomes = launch(2, 2)({command, "--size", "1MiB", option, directory.file(file)});
    INFO(option);
    CHECK(codes(outcomes) == std::vector{2, 2});
    CHECK_THAT(outcomes[0].err, ContainsSubstring("%r"));
    CHECK(directory.files() == 0);
  }
}

TEST_CASE("a plan is rank 0's", "[ranks]") {
  const auto outcomes = launch(2, 2)(with(copy, {"--dry-run"}));
  CHECK(codes(outcomes) == std::vector{0, 0});
  CHECK(json::parse(outcomes[0].out)["kind"] == "plan");
  CHECK(outcomes[1].out.empty());
}

TEST_CASE("what rank 0 may not write ends all ranks", "[ranks]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("all.jsonl"))
      << Simulation{}({"copy", "--size", "1MiB", "--samples", "5", "--format", "jsonl"}).out;
  const auto outcomes = launch(3, 3)(with(copy, {"-o", directory.file("all.jsonl")}));
  CHECK(codes(outcomes) == std::vector{2, 2, 2});
  CHECK(outcomes[0].out.empty());
  CHECK_THAT(outcomes[0].err, ContainsSubstring("all.jsonl"));
}

TEST_CASE("what one rank cannot read is told by rank 0, and the others measure", "[ranks]") {
  Launch two = launch(2, 2);
  const TemporaryDirectory directory;
  std::ofstream(directory.file("0.jsonl")) << Simulation{}({"copy", "--size", "1MiB", "--gpus", "0",
                                                            "--samples", "5", "--format", "jsonl"})
                                                  .out;
  const auto outcomes =
      two(with(copy, {"--append", "-o", directory.file("%r.jsonl"), "--samples", "5"}));
  CHECK(codes(outcomes) == std::vector{2, 2});
  std::ofstream(directory.file("1.jsonl")) << "not ours\n";
  const auto mixed = two(with(copy, {"--append", "-o", directory.file("%r.jsonl")}));
  CHECK(codes(mixed) == std::vector{2, 2});
  CHECK_THAT(mixed[0].err, ContainsSubstring("1.jsonl") && ContainsSubstring("(rank 1)"));
  CHECK(json::parse(mixed[0].out)["gpus"].size() == 2);  // rank 0 has them to itself
}

TEST_CASE("a failed run does not take the place of an earlier result", "[ranks]") {
  const TemporaryDirectory directory;
  const std::vector<std::string> args = with(copy, {"-o", directory.file("all.json")});
  CHECK(codes(launch(2, 2)(args)) == std::vector{0, 0});
  const std::string kept = contents(directory.file("all.json"));
  CHECK(codes(launch(3, 2)(args)) == std::vector{4, 4, 4});
  CHECK(contents(directory.file("all.json")) == kept);
}

TEST_CASE("the gravest error of all ranks is the report's", "[ranks]") {
  Launch three = launch(3, 3);
  Fault memory;
  memory.call = Fault::Call::allocate;
  memory.kind = ErrorKind::memory;
  three.ranks[1].faults = {memory};
  Fault flip;
  flip.act = Fault::Act::flip;
  flip.nth = 2 + 20 + 20 + 1;
  three.ranks[2].faults = {flip};
  const json report = json::parse(three(copy)[0].out);
  CHECK(report["exit_code"] == 6);
  CHECK(report["error"]["kind"] == "verification");
  CHECK(report["error"]["code"] == 6);
  CHECK_THAT(report["error"]["message"].get<std::string>(),
             ContainsSubstring("wrong data") && !ContainsSubstring("mgpu: error"));
}

TEST_CASE("a rank may be silent for as long as two steps, and somewhat more", "[ranks]") {
  CHECK(patience_with(120) == 245'000'000'000);
  CHECK(patience_with(0) == 0);
}

TEST_CASE("a rank that falls silent is given up, and its node is excluded", "[ranks]") {
  FirstRank first(2);
  Ranks ranks(first.team, first.request, "node1", first.console, 20'000'000);
  ranks.open();
  const Report own;
  ranks.observe(own, [] {});
  first.hear(1, "dnode2\nGPU-1");
  CHECK(ranks.finish({}) == 7);
  const json report = first.report();
  CHECK(report["error"]["kind"] == "timeout");
  CHECK(report["missing"][0]["host"] == "node2");
  CHECK(report["exclude"] == "node2");
  CHECK_THAT(first.err, ContainsSubstring("rank 1 has been silent for 0.02"));
}

TEST_CASE("a report cannot be written: every rank ends with 1", "[ranks]") {
  Launch two = launch(2, 2);
  two.ranks[0].out_errno = ENOSPC;
  const auto outcomes = two(copy);
  CHECK(codes(outcomes) == std::vector{1, 1});
  CHECK_THAT(outcomes[0].err, ContainsSubstring("cannot write to stdout"));

  const auto full = launch(2, 2)(with(copy, {"-o", "json:/dev/full"}));
  CHECK(codes(full) == std::vector{1, 1});
  const json report = json::parse(full[0].out);
  CHECK(report["exit_code"] == 1);
  CHECK_THAT(report["error"]["message"].get<std::string>(), ContainsSubstring("/dev/full"));
}

TEST_CASE("ranks that see the same devices share them, others use what they see", "[ranks]") {
  const auto shares = [](const std::vector<std::optional<Seen>>& seen) {
    std::vector<std::string> words;
    for (const Dealt& dealt : deal(seen))
      words.push_back(dealt.refusal.empty() ? std::to_string(dealt.share.index) + "/" +
                                                  std::to_string(dealt.share.count)
                                            : dealt.refusal);
    return words;
  };
  const Seen both{"node1", {"a", "b"}}, there{"node2", {"a", "b"}};
  CHECK(shares({both, there, both, std::nullopt}) ==
        std::vector<std::string>{"0/2", "0/1", "1/2", "0/1"});
  CHECK(shares({Seen{"n", {"a"}}, Seen{"n", {"b"}}, Seen{"n", {"c", "d"}}}) ==
        std::vector<std::string>{"0/1", "0/1", "0/1"});
  for (const std::string& word : shares({both, Seen{"node1", {"b", "c"}}}))
    CHECK_THAT(word, ContainsSubstring("ranks 0, 1 on node1 see different devices"));
}

TEST_CASE("after a signal rank 0 writes what it has and names who did not report", "[ranks]") {
  FirstRank first(3);
  Ranks ranks(first.team, first.request, "node1", first.console, 0);
  ranks.open();
  const Report own = terminated();
  ranks.observe(own, [] {});

  // Rank 1 has told its host and has sent a case; rank 2 has said nothing at all.
  json line = json::parse(
      Simulation{}({"copy", "--size", "1MiB", "--gpus", "0", "--samples", "5", "--format", "jsonl"})
          .out);
  line["host"]["name"] = "node2";
  line["host"]["rank"] = 1;
  first.hear(1, "dnode2\nGPU-1");
  first.hear(1, "c" + line.dump() + "\n");

  std::stop_source stop;
  stop.request_stop();
  CHECK(ranks.finish(stop.get_token()) == 143);
  const json report = first.report();
  CHECK(report["complete"] == false);
  REQUIRE(report["missing"].size() == 2);
  CHECK(report["missing"][0]["rank"] == 1);
  CHECK(report["missing"][0]["host"] == "node2");
  CHECK(report["missing"][0]["last_case"] == line["cases"][0]["key"]);
  CHECK(report["missing"][1]["rank"] == 2);
  CHECK(report["gpus"].size() == 1);
  CHECK(report["exclude"].is_null());  // nobody knows which of them died
}

TEST_CASE("what is at hand is written at a signal, and files get what comes after", "[ranks]") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("all.json");
  FirstRank first(2);
  first.request.outputs = {{Format::json, file}};
  Ranks ranks(first.team, first.request, "node1", first.console, 0);
  ranks.open();
  const Report own = terminated();
  ranks.observe(own, [] {});
  first.hear(1, "dnode2\nGPU-1");
  ranks.alive();
  ranks.interrupt(SIGTERM);
  while (contents(file).empty()) std::this_thread::yield();
  CHECK(json::parse(contents(file))["missing"].size() == 1);

  first.hear(1, "e0 143 -1\n.\n");
  std::stop_source stop;
  stop.request_stop();
  CHECK(ranks.finish(stop.get_token()) == 143);
  CHECK(first.report()["missing"][0]["host"] == "node2");
  CHECK(json::parse(contents(file))["missing"].empty());
}

TEST_CASE("a hang on rank 0 leaves with the report of all", "[ranks]") {
  Launch two = launch(2, 2);
  Fault hang;
  hang.act = Fault::Act::hang;
  hang.call = Fault::Call::sync;
  hang.nth = 30;
  two.ranks[0].faults = {hang};
  const auto outcomes = two(with(copy, {"--timeout", "0.5"}));
  CHECK(outcomes[0].left_with == 7);
  const std::string& out = outcomes[0].out;
  const json report = json::parse(out.substr(0, out.find("\n}\n") + 3));
  CHECK(report["kind"] == "fleet");
  CHECK(report["complete"] == false);
}

TEST_CASE("one of several ranks without MPI says that it runs alone", "[ranks]") {
  const TemporaryDirectory directory;
  const Launcher launcher(2, 4);
  Simulation alone;
  const Outcome outcome = alone(with(copy, {"-o", directory.file("run.%r.json")}));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("rank 2 of 4 and runs alone"));
  CHECK(json::parse(contents(directory.file("run.2.json")))["kind"] == "trials");
  CHECK(alone({"show", directory.file("run.2.json")}).err.empty());
}

TEST_CASE("names of files are verbatim where there is no launcher", "[ranks]") {
  const TemporaryDirectory directory;
  CHECK(Simulation{}(with(copy, {"-o", directory.file("%r%%.json")})).code == 0);
  CHECK(std::filesystem::exists(directory.file("%r%%.json")));
}

TEST_CASE("rank, host and per cent sign take their places in names of files", "[ranks]") {
  Request request;
  request.outputs = {{Format::json, "%h/%r.json"}, {Format::text, "100%%r%x%"}};
  request.timeline = "%r.json";
  expand_names(request, 12, "node7");
  CHECK(request.outputs[0].path == "node7/12.json");
  CHECK(request.outputs[1].path == "100%r%x%");
  CHECK(request.timeline == "12.json");
}
