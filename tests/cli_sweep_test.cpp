// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace mgpu;

namespace {

/// Every combination of the axes of a sweep, the first axis outermost.
std::vector<CaseSpec> combinations(const std::string& options) {
  const Request r = request("sweep " + options);
  CHECK(r.command == Command::sweep);
  CHECK(r.cases.empty());
  std::vector<CaseSpec> specs(1);
  for (const Axis& axis : r.axes) {
    std::vector<CaseSpec> longer;
    for (const CaseSpec& base : specs)
      for (const auto& set : axis) set(longer.emplace_back(base));
    specs = std::move(longer);
  }
  return specs;
}

/// The sizes of a sweep over nothing else.
std::vector<Size> sizes(const std::string& list) {
  std::vector<Size> all;
  for (const CaseSpec& spec : combinations("--size " + list)) all.push_back(spec.size.value());
  return all;
}
std::vector<int> splits(const std::string& list) {
  std::vector<int> all;
  for (const CaseSpec& spec : combinations("--size 1MB --split " + list))
    all.push_back(spec.split.value());
  return all;
}

}  // namespace

TEST_CASE("a sweep without options is one of sizes", "[cli]") {
  const std::string line =
      GENERATE("", "--split 2", "--memory managed", "--gpus 0,1", "--gpus 0 --gpus 0",
               "--split 2,2", "--engine memcpy --cold", "--samples 3", "--unified --no-prefetch");
  INFO(line);
  const auto specs = combinations(line);
  REQUIRE(specs.size() >= 11);
  CHECK(specs[0].size == Size{1u << 20, false});
  CHECK(specs[1].size == Size{2u << 20, false});
  CHECK(specs.back().size == Size{1u << 30, false});
  CHECK(request("sweep " + line).axes.back().size() == 11);
}

TEST_CASE("a sweep over something else, of one size or by a preset keeps its size", "[cli]") {
  CHECK_FALSE(combinations("--split 1,2")[0].size);
  CHECK_FALSE(combinations("--gpus 0 --gpus 1")[0].size);
  CHECK(request("sweep --preset scaling").axes.empty());
  CHECK(combinations("--preset scaling --engine memcpy").size() == 1);
  CHECK(sizes("4GB") == std::vector{Size{4'000'000'000, false}});
}

TEST_CASE("the axes of a sweep nest in their own order, whatever the order given", "[cli]") {
  const std::string line = GENERATE("--size 1MB,2MB --engine kernel,memcpy --gpus 1 --gpus 0",
                                    "--gpus 1 --gpus 0 --engine kernel,memcpy --size 1MB,2MB");
  const auto specs = combinations(line);
  REQUIRE(specs.size() == 8);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    INFO(i);
    CaseSpec expected;
    expected.gpus = parse_gpus(i < 4 ? "1" : "0", "--gpus");
    expected.engine = i / 2 % 2 == 0 ? Engine::kernel : Engine::memcpy;
    expected.size = Size{i % 2 == 0 ? 1'000'000u : 2'000'000u, false};
    CHECK(specs[i] == expected);
  }
}

TEST_CASE("each option with a list varies its field alone, in the documented order", "[cli]") {
  const std::pair<std::string, std::function<void(CaseSpec&)>> second_values[] = {
      {"--gpus 0 --gpus 1,0", [](auto& s) { s.gpus = parse_gpus("1,0", "--gpus"); }},
      {"--memory device,managed", [](auto& s) { s.memory = MemoryKind::managed; }},
      {"--home local,1", [](auto& s) { s.home = parse_place("1", "--home"); }},
      {"--split 1,3", [](auto& s) { s.split = 3; }},
      {"--align 16B,2MiB", [](auto& s) { s.align = Bytes{2} << 20; }},
      {"--engine kernel,memcpy", [](auto& s) { s.engine = Engine::memcpy; }},
      {"--access 16,4", [](auto& s) { s.access = 4; }},
      {"--batch 1,7", [](auto& s) { s.batch = 7; }},
      {"--prefetch none,array", [](auto& s) { s.prefetch = Prefetch::array; }},
      {"--owner-wait none,event", [](auto& s) { s.owner_wait = OwnerWait::event; }},
      {"--advise none,preferred", [](auto& s) { s.advise = Advice::preferred; }},
      {"--runtime plain,cudajl-5.4", [](auto& s) { s.runtime = Runtime::cudajl_5_4; }},
      {"--threads pool,single", [](auto& s) { s.threads = Threads::single; }},
      {"--peer auto,off", [](auto& s) { s.peer = Peer::off; }},
      {"--size 1GB,2GB/gpu",
       [](auto& s) {
         s.size = Size{2'000'000'000, true};
       }},
  };
  std::string all;
  for (const auto& [lists, set] : second_values) {
    INFO(lists);
    const auto specs = combinations(lists);
    REQUIRE(specs.size() == 2);
    CaseSpec expected = specs[0];
    set(expected);
    CHECK(specs[1] == expected);
    CHECK_FALSE(specs[0] == expected);
    all = lists + " " + all;
  }
  const Request r = request("sweep " + all);
  REQUIRE(r.axes.size() == std::size(second_values));
  for (std::size_t i = 0; i < r.axes.size(); ++i) {
    INFO(second_values[i].first);
    CaseSpec first, expected;
    r.axes[i].at(0)(first);
    second_values[i].second(expected = first);
    r.axes[i].at(1)(first);
    CHECK(first == expected);
  }
}

TEST_CASE("a list takes every word of its option", "[cli]") {
  const auto tree = option_tree();
  const auto sweep = std::ranges::find(tree, "sweep", &CommandInfo::name);
  REQUIRE(sweep != tree.end());
  int lists = 0;
  for (const OptionInfo& option : sweep->options) {
    const std::string& name = option.names.back();
    if (option.words.empty()) continue;
    std::string list;
    for (const std::string& word : option.words) list += (list.empty() ? "" : ",") + word;
    const auto message = refusal("sweep " + name + " " + list);
    if (message) {
      // Words that shape no case are given one at a time.
      CHECK(refusal("sweep --baseline a.json " + name + " " + option.words[0]) == std::nullopt);
      continue;
    }
    CHECK(combinations(name + " " + list).size() == option.words.size());
    ++lists;
  }
  CHECK(lists == 9);
}

TEST_CASE("a range doubles up to its last point, or multiplies by its factor", "[cli]") {
  CHECK(splits("1..8") == std::vector{1, 2, 4, 8});
  CHECK(splits("1..6") == std::vector{1, 2, 4, 6});
  CHECK(splits("3..3") == std::vector{3});
  CHECK(splits("1..100:10") == std::vector{1, 10, 100});
  CHECK(splits("1..8:1.5") == std::vector{1, 2, 3, 5, 8});
  CHECK(splits("2..3:1.01") == std::vector{2, 3});
  CHECK(splits("5,1..4,7") == std::vector{5, 1, 2, 4, 7});
  CHECK(combinations("--batch 1..1000:10").size() == 4);
  CHECK(combinations("--align 4B..2MiB:8").back().align == Bytes{2} << 20);

  const auto bytes = [](Bytes n) { return Size{n, false}; };
  CHECK(sizes("1MiB..3MB") == std::vector{bytes(1 << 20), bytes(2 << 20), bytes(3'000'000)});
  CHECK(sizes("1kB..1MB:10") ==
        std::vector{bytes(1'000), bytes(10'000), bytes(100'000), bytes(1'000'000)});
  CHECK(sizes("1MiB..1GiB").size() == 11);
  const Bytes most = 18'446'744'073'709'551'615u;
  CHECK(sizes("9223372036854775807..18446744073709551615").back() == bytes(most));
}

TEST_CASE("/gpu behind a range's last point holds for all", "[cli]") {
  CHECK(sizes("1B..4B/gpu") == std::vector{Size{1, true}, Size{2, true}, Size{4, true}});
  CHECK(sizes("1B/gpu..4B/gpu:4") == std::vector{Size{1, true}, Size{4, true}});
  CHECK(sizes("1B..2B/gpu,8B") == std::vector{Size{1, true}, Size{2, true}, Size{8, false}});
  CHECK(holds(refusal("sweep --size 1B/gpu..4B").value_or(""), "--size '1B/gpu..4B'"));
  CHECK(holds(refusal("sweep --align 1B..4B/gpu").value_or(""), "--align"));
}

TEST_CASE("wrong lists and ranges are refused by option and value", "[cli]") {
  const auto [option, list, named] = GENERATE(table<std::string, std::string, std::string>({
      {"--size", "''", "''"},
      {"--size", "1MB,", "'1MB,'"},
      {"--size", ",1MB", "',1MB'"},
      {"--size", "1MB,,2MB", "'1MB,,2MB'"},
      {"--size", "1MB,4XB", "'4XB'"},
      {"--size", "0..4", "'0'"},
      {"--size", "..4", "''"},
      {"--size", "4..", "''"},
      {"--size", "2MB..1MB", "'2MB..1MB'"},
      {"--size", "1MB..2MB:1", "'1MB..2MB:1'"},
      {"--size", "1MB..2MB:0.5", "'1MB..2MB:0.5'"},
      {"--size", "1MB..2MB:", "''"},
      {"--size", "1MB..2MB:x", "'x'"},
      {"--size", "1MB..2MB:nan", "'nan'"},
      {"--size", "1MB..2MB:4/gpu", "'4/gpu'"},
      {"--size", "1MB..2MB..3MB", "'2MB..3MB'"},
      {"--size", "1MB..1TB:1.000000000001", "100,000 steps"},
      {"--split", "1..100000", "'100000'"},
      {"--split", "1,0", "'0'"},
      {"--split", "1..4MB", "'4MB'"},
      {"--split", "1.5..3", "'1.5'"},
      {"--engine", "kernel,", "'kernel,'"},
      {"--engine", "kernel,x", "'x'"},
      {"--engine", "kernel..memcpy", "'kernel..memcpy'"},
      {"--access", "4..16", "'4..16'"},
      {"--home", "local,0,x", "'x'"},
      {"--gpus", "0..1", "'0..1'"},
      {"--gpus", "0,0", "'0,0'"},
      {"--backend", "cuda,host", "'cuda,host'"},
      {"--samples", "1,2", "'1,2'"},
      {"--seconds", "1,2", "'1,2'"},
      {"--verify", "ends,none", "'ends,none'"},
      {"--preset", "scaling,issue-2615", "'scaling,issue-2615'"},
      {"--preset", "x", "'x'"},
      {"--resume", "run.json", "'run.json'"},
      {"--resume", "run", "'run'"},
      {"--resume", ".jsonl", "'.jsonl'"},
      {"--resume", "-", "'-'"},
  }));
  INFO(option << " " << list);
  const auto message = refusal("sweep " + option + " " + list);
  REQUIRE(message);
  CHECK(holds(*message, option));
  CHECK(holds(*message, named));
}

TEST_CASE("a sweep has an end: more than 100,000 cases are refused", "[cli]") {
  CHECK_FALSE(refusal("sweep --batch 1..3:1.00002 --split 1..2"));
  const std::string thousand = "--batch 1..1000:1.0001";
  REQUIRE(combinations(thousand).size() == 1000);
  CHECK(request("sweep " + thousand + " --size 1B..100B:1.01").axes.size() == 2);
  const auto message = refusal("sweep " + thousand + " --size 1B..101B:1.01");
  REQUIRE(message);
  CHECK(holds(*message, "100,000 cases"));
  CHECK(holds(refusal("sweep --size 1MB..1TB:1.0001,1MB..1TB:1.0002").value_or(""), "--size"));
}

TEST_CASE("in a sweep an option is given once, but for the GPUs", "[cli]") {
  CHECK(holds(refusal("sweep --size 1MB --size 2MB").value_or(""), "--size is given 2 times"));
  CHECK(request("sweep --gpus all --gpus 0 --gpus 1,0").axes.at(0).size() == 3);
}

TEST_CASE("what is for managed memory is a row of a sweep with any", "[cli]") {
  const std::string line = GENERATE("--prefetch array", "--cold", "--advise preferred",
                                    "--counters", "--memory device,managed --prefetch none,once");
  INFO(line);
  CHECK_FALSE(refusal("sweep " + line));
}

TEST_CASE("a flag sets every case of a sweep", "[cli]") {
  for (const CaseSpec& spec : combinations("--unified --cold --no-prefetch --split 1,2")) {
    CHECK(spec.memory == MemoryKind::managed);
    CHECK(spec.cold);
    CHECK(spec.prefetch == Prefetch::none);
  }
  CHECK_FALSE(refusal("sweep --unified --memory managed"));
  CHECK_FALSE(combinations("--split 1,2")[0].cold);
  for (const std::string list : {"device", "device,managed", "managed,device"})
    CHECK(holds(refusal("sweep --unified --memory " + list).value_or(""), "--memory device"));
  for (const std::string list : {"once", "once,none", "none,once"})
    CHECK(holds(refusal("sweep --no-prefetch --prefetch " + list).value_or(""), "--prefetch once"));
}

TEST_CASE("a sweep takes what is no part of a case as copy does", "[cli]") {
  const Request r = request(
      "sweep --backend host --host-devices 2 --seconds 0.2 --samples 9 --warmup 0 --until 1 "
      "--timeout 3 --no-verify --oversubscribe --counters --dry-run --json --histogram log -q");
  CHECK(r.backend == BackendKind::host);
  CHECK(r.host_devices == 2);
  CHECK(r.sampling.seconds == 0.2);
  CHECK(r.sampling.samples == 9);
  CHECK(r.sampling.warmup == 0);
  CHECK(r.sampling.until == 1);
  CHECK(r.sampling.timeout == 3);
  CHECK(r.sampling.verify == Verify::none);
  CHECK(r.sampling.oversubscribe);
  CHECK(r.sampling.counters);
  CHECK(r.dry_run);
  CHECK(r.format == Format::json);
  CHECK(r.histogram == HistogramScale::log);
  CHECK(r.quiet);
  CHECK_FALSE(r.preset);
  CHECK(r.resume.empty());
}

TEST_CASE("a sweep has no timeline and says so", "[cli]") {
  const std::string value = GENERATE("", " t.json", "=t.json", " -");
  const auto message = refusal("sweep --timeline" + value);
  REQUIRE(message);
  CHECK(holds(*message, "--timeline is not available"));
  CHECK_FALSE(holds(immediate("sweep --help"), "--timeline"));
}

TEST_CASE("presets are known by name and can be listed", "[cli]") {
  const std::string list = immediate("sweep --list-presets");
  for (const auto& word : vocabulary<Preset>) {
    CHECK(request("sweep --preset " + std::string(word.name)).preset == word.value);
    CHECK(holds(list, std::string(word.name) + " "));
    CHECK(holds(list, std::string(word.help) + "\n"));
  }
  CHECK(immediate("sweep --list-presets --size 4XB") == list);
  CHECK(refusal("copy --preset scaling"));
  CHECK(refusal("copy --list-presets"));
}

TEST_CASE("the file to resume is an output once, whether named as one or not", "[cli]") {
  const std::string line = GENERATE("", " -o a/run.jsonl", " -o ./a/b/../run.jsonl",
                                    " -o jsonl:a/run.jsonl", " --force");
  const Request r = request("sweep --resume a/run.jsonl -o b.csv" + line);
  INFO(line);
  CHECK(r.resume == "a/run.jsonl");
  REQUIRE(r.outputs.size() == 1);
  CHECK(r.outputs[0].path == "b.csv");
}

TEST_CASE("a file to resume is neither another round nor in another format", "[cli]") {
  CHECK(holds(refusal("sweep --resume a.jsonl --append").value_or(""), "--append"));
  CHECK(holds(refusal("sweep --resume a.jsonl -o csv:a.jsonl").value_or(""), "'a.jsonl'"));
  CHECK(holds(refusal("sweep --resume a.jsonl -o a.jsonl -o a.jsonl").value_or(""), "twice"));
  CHECK(request("sweep --resume a.jsonl -o b.jsonl").outputs.size() == 1);
  CHECK(refusal("copy --resume a.jsonl"));
}

TEST_CASE("lists, ranges and repeated GPUs are for sweeps alone", "[cli]") {
  const std::string line =
      GENERATE("--size 1MB,2MB", "--size 1MB..2MB", "--split 1,2", "--split 1..2", "--batch 1..2",
               "--align 4B,8B", "--engine kernel,memcpy", "--memory device,managed",
               "--home local,0", "--access 4,8", "--peer on,off", "--threads pool,single",
               "--gpus 0 --gpus 1", "--owner-wait none,host", "--runtime plain,cudajl-5.4",
               "--unified --prefetch none,once", "--unified --advise none,preferred");
  INFO(line);
  CHECK(refusal("copy " + line));
  CHECK_FALSE(refusal("sweep " + line));
}
