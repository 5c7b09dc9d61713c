// SPDX-License-Identifier: MIT
#include "command_line.hpp"
#include "version.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

using namespace mgpu;

namespace {

CaseSpec copy_case(const std::string& options) {
  return request("copy " + options).cases.at(0);
}

}  // namespace

TEST_CASE("copy without options is one case with the defaults", "[cli]") {
  const Request r = request("copy");
  CHECK(r.command == Command::copy);
  CHECK(r.backend == BackendKind::cuda);
  CHECK_FALSE(r.host_devices);
  REQUIRE(r.cases.size() == 1);
  const CaseSpec& spec = r.cases[0];
  CHECK(spec.gpus.empty());
  CHECK_FALSE(spec.size);
  CHECK(spec.memory == MemoryKind::device);
  CHECK_FALSE(spec.home);
  CHECK_FALSE(spec.split);
  CHECK_FALSE(spec.align);
  CHECK_FALSE(spec.prefetch);
  CHECK(spec.access == 16);
  CHECK_FALSE(spec.cold);
  CHECK_FALSE(spec.owner_wait);
  CHECK(spec.advise == Advice::none);
  CHECK_FALSE(spec.runtime);
  CHECK_FALSE(spec.threads);
  CHECK(spec.peer == Peer::automatic);
  CHECK_FALSE(r.sampling.until);
  CHECK_FALSE(r.sampling.counters);
  CHECK(r.timeline.empty());
  CHECK_FALSE(r.sampling.timeline);
  CHECK(r.sampling.samples == 10000);
  CHECK(r.sampling.seconds == 5);
  CHECK(r.sampling.warmup == 2);
  CHECK(r.sampling.timeout == 120);
  CHECK(r.sampling.verify == Verify::ends);
  CHECK(r.format == Format::text);
  CHECK(r.outputs.empty());
}

TEST_CASE("every option of copy reaches its field", "[cli]") {
  CHECK(request("copy --backend host").backend == BackendKind::host);
  CHECK(request("copy --backend host --host-devices 3").host_devices == 3);
  CHECK(copy_case("--gpus 1,0").gpus == parse_gpus("1,0", "--gpus"));
  CHECK(copy_case("--size 64MiB/gpu").size == Size{64u << 20, true});
  CHECK(copy_case("--memory managed").memory == MemoryKind::managed);
  CHECK(copy_case("--unified").memory == MemoryKind::managed);
  CHECK(copy_case("--home 0").home == parse_place("0", "--home"));
  CHECK(copy_case("--home local").home == PlaceSpec{});
  CHECK(copy_case("--split 65536").split == 65536);
  CHECK(copy_case("--align 4B").align == Bytes{4});
  CHECK(copy_case("--engine memcpy").engine == Engine::memcpy);
  CHECK(copy_case("--access 4").access == 4);
  CHECK(copy_case("--batch 7").batch == 7);
  CHECK(copy_case("--unified --prefetch array").prefetch == Prefetch::array);
  CHECK(copy_case("--no-prefetch").prefetch == Prefetch::none);
  CHECK(copy_case("--unified --cold").cold);
  CHECK(copy_case("--owner-wait host").owner_wait == OwnerWait::host);
  CHECK(copy_case("--owner-wait event").owner_wait == OwnerWait::event);
  CHECK(copy_case("--unified --advise read-mostly").advise == Advice::read_mostly);
  CHECK(copy_case("--runtime cudajl-5.7-nosync").runtime == Runtime::cudajl_5_7_nosync);
  CHECK(copy_case("--threads task").threads == Threads::task);
  CHECK(copy_case("--threads single").threads == Threads::single);
  CHECK(copy_case("--peer on").peer == Peer::on);
  CHECK(copy_case("--peer auto").peer == Peer::automatic);
  CHECK(request("copy --samples 12").sampling.samples == 12);
  CHECK(request("copy --seconds 0.25").sampling.seconds == 0.25);
  CHECK(request("copy --warmup 0").sampling.warmup == 0);
  CHECK(request("copy --until 0.5").sampling.until == 0.5);
  CHECK(request("copy --until 2%").sampling.until == 2);
  CHECK(request("copy --timeout 0").sampling.timeout == 0);
  CHECK(request("copy --verify every").sampling.verify == Verify::every);
  CHECK(request("copy --no-verify").sampling.verify == Verify::none);
  CHECK(request("copy --oversubscribe").sampling.oversubscribe);
  CHECK(request("copy --unified --counters").sampling.counters);
  CHECK(request("copy --timeline a/t.json").timeline == "a/t.json");
  CHECK(request("copy --timeline a/t.json").sampling.timeline);
  CHECK(request("copy --timeline -").timeline == "-");
  CHECK(request("copy --timeline -").sampling.timeline);
  CHECK(request("copy --dry-run -o plan.json").dry_run);
  CHECK(request("copy --histogram log").histogram == HistogramScale::log);
  CHECK(request("copy --format csv").format == Format::csv);
  CHECK(request("copy --json").format == Format::json);
  CHECK(request("copy --append").append);
  CHECK(request("copy --force").force);
  CHECK(request("copy --color never").color == Color::never);
  CHECK(request("copy -q").quiet);
  CHECK(request("copy --quiet").quiet);
}

TEST_CASE("a value may be attached or stand alone, and may hold blanks", "[cli]") {
  CHECK(copy_case("--size=4GB").size == Size{4'000'000'000, false});
  CHECK(copy_case("--size 4GB").size == Size{4'000'000'000, false});
  CHECK(request(Args{"copy", "--size", "64 MiB/gpu"}).cases.at(0).size == Size{64u << 20, true});
  CHECK(request("copy -oa.json").outputs.at(0).path == "a.json");
  CHECK(request("copy -qo a.json").outputs.at(0).path == "a.json");
}

TEST_CASE("the request keeps the command line as it was given", "[cli]") {
  CHECK(request("copy --size=4GB -q").argv == Args{"mgpu", "copy", "--size=4GB", "-q"});
  CHECK(request("copy").argv == Args{"mgpu", "copy"});
}

TEST_CASE("an option takes one value each time, never the words behind it", "[cli]") {
  const Request r = request("show -o a.json b.json -o c.csv d.json");
  CHECK(r.files == std::vector<std::string>{"b.json", "d.json"});
  REQUIRE(r.outputs.size() == 2);
  CHECK(r.outputs[0].path == "a.json");
  CHECK(r.outputs[1].path == "c.csv");
}

TEST_CASE("file names are taken as they are", "[cli]") {
  CHECK(request("show [a] [b,c] -").files == Args{"[a]", "[b,c]", "-"});
  CHECK(request("show a -- -b --json --").files == Args{"a", "-b", "--json", "--"});
  CHECK(request("show topo").files == Args{"topo"});
  CHECK(request(Args{"show", "a b"}).files == Args{"a b"});
}

TEST_CASE("an output says its format by extension or prefix", "[cli]") {
  const auto [text, format, path] = GENERATE(table<std::string, Format, std::string>({
      {"a.txt", Format::text, "a.txt"},
      {"a.json", Format::json, "a.json"},
      {"a.jsonl", Format::jsonl, "a.jsonl"},
      {"a.csv", Format::csv, "a.csv"},
      {"a.md", Format::markdown, "a.md"},
      {"b.csv/a.json", Format::json, "b.csv/a.json"},
      {"json:/dev/fd/3", Format::json, "/dev/fd/3"},
      {"text:a.json", Format::text, "a.json"},
      {"markdown:a", Format::markdown, "a"},
      {"md:a.csv", Format::csv, "md:a.csv"},
      {"a.gp", Format::gp, "a.gp"},
      {"a.svg", Format::svg, "a.svg"},
      {"a.png", Format::png, "a.png"},
      {"svg:/dev/fd/3", Format::svg, "/dev/fd/3"},
  }));
  const Request r = request(Args{"copy", "--output", text});
  REQUIRE(r.outputs.size() == 1);
  CHECK(r.outputs[0].format == format);
  CHECK(r.outputs[0].path == path);
}

TEST_CASE("an output without a known format is refused with the extensions that are", "[cli]") {
  const std::string text =
      GENERATE("a", "a.foo", ".json", "a.json/b", "-", "''", "foo:bar", "a.JSON");
  const auto message = refusal("copy -o " + text);
  REQUIRE(message);
  CHECK(holds(*message, "--output"));
  CHECK(holds(*message, ".txt .json .jsonl .csv .md .xml .gp .svg .png"));
}

TEST_CASE("wrong values are refused by the option's name", "[cli]") {
  const auto [option, value] = GENERATE(table<std::string, std::string>({
      {"--size", "0"},           {"--size", "-1"},        {"--size", "4XB"},
      {"--size", "4G"},          {"--size", "nan"},       {"--size", "-nan"},
      {"--size", "''"},          {"--size", "-x"},        {"--gpus", "0,,1"},
      {"--gpus", "0,0"},         {"--gpus", "1-0"},       {"--gpus", "''"},
      {"--gpus", "-1"},          {"--home", "0,1"},       {"--home", "''"},
      {"--split", "0"},          {"--split", "65537"},    {"--split", "1.5"},
      {"--align", "0"},          {"--align", "4B/gpu"},   {"--access", "5"},
      {"--access", "04"},        {"--batch", "0"},        {"--samples", "0"},
      {"--samples", "-5"},       {"--seconds", "nan"},    {"--seconds", "0"},
      {"--seconds", "inf"},      {"--warmup", "-1"},      {"--timeout", "-1"},
      {"--timeout", "nan"},      {"--engine", "''"},      {"--memory", "x"},
      {"--prefetch", "x"},       {"--owner-wait", "x"},   {"--threads", "x"},
      {"--verify", "x"},         {"--histogram", "x"},    {"--format", "x"},
      {"--color", "x"},          {"--backend", "x"},      {"--engine", "kernel,memcpy"},
      {"--until", "0"},          {"--until", "0%"},       {"--until", "-1"},
      {"--until", "nan"},        {"--until", "inf"},      {"--until", "%"},
      {"--until", "1%%"},        {"--until", "1/2"},      {"--until", "''"},
      {"--advise", "x"},         {"--advise", "''"},      {"--runtime", "x"},
      {"--runtime", "''"},       {"--peer", "x"},         {"--peer", "automatic"},
      {"--timeline", "t"},       {"--timeline", "''"},    {"--timeline", "t.txt"},
      {"--timeline", "t.jsonl"}, {"--timeline", ".json"}, {"--timeline", "json:t"},
  }));
  const auto apart = refusal("copy " + option + " " + value);
  INFO(option << " " << value);
  REQUIRE(apart);
  CHECK(holds(*apart, option));
  const auto attached = refusal("copy " + option + "=" + (value == "''" ? "" : value));
  CHECK(attached == apart);
}

TEST_CASE("the host backend takes 1 to 1024 devices", "[cli]") {
  CHECK(request("copy --backend host --host-devices 1024").host_devices == 1024);
  CHECK(refusal("copy --backend host --host-devices 1025"));
  CHECK(refusal("copy --backend host --host-devices 0"));
}

TEST_CASE("an unknown word is answered by the words there are and the nearest", "[cli]") {
  const auto message = refusal("copy --engine kernl");
  REQUIRE(message);
  CHECK(holds(*message, "--engine 'kernl' is none of kernel, memcpy"));
  CHECK(holds(*message, "did you mean 'kernel'?"));
  CHECK_FALSE(holds(refusal("copy --engine quantum").value_or(""), "did you mean"));
  CHECK_FALSE(holds(refusal("copy --access 5").value_or(""), "did you mean"));
}

TEST_CASE("an unknown option or command names the one that was probably meant", "[cli]") {
  CHECK(holds(refusal("copy --sizee 4GB").value_or(""), "'--sizee'"));
  CHECK(holds(refusal("copy --sizee 4GB").value_or(""), "did you mean '--size'?"));
  CHECK(holds(refusal("copy --sizee=4GB").value_or(""), "did you mean '--size'?"));
  CHECK(holds(refusal("copy -json").value_or(""), "did you mean '--json'?"));
  CHECK(holds(refusal("copy -x").value_or(""), "mgpu copy --help"));
  CHECK(holds(refusal("topo --split 2").value_or(""), "unknown option '--split' of mgpu topo"));
  CHECK(holds(refusal("cpoy").value_or(""), "did you mean 'copy'?"));
  CHECK(holds(refusal("frobnicate").value_or(""), "copy, sweep, topo, show"));
  CHECK(holds(refusal("help cpoy").value_or(""), "did you mean 'copy'?"));
  CHECK(holds(refusal("copy --unified --prefetch onec").value_or(""), "did you mean 'once'?"));
  CHECK(holds(refusal("topo --measure=apirs").value_or(""), "did you mean 'pairs'?"));
  CHECK(holds(refusal("--backend host copy").value_or(""), "'--backend'"));
}

TEST_CASE("an option that lacks its value is named", "[cli]") {
  const std::string line = GENERATE("copy --size", "copy --size --gpus 0", "copy --size --gpus=0",
                                    "copy --size -- 4GB", "copy --size -q");
  CHECK(holds(refusal(line).value_or(""), "--size needs a value"));
}

TEST_CASE("an option of words that lacks its value names them, however many", "[cli]") {
  CHECK(holds(refusal("copy --peer").value_or(""), "auto|on|off"));
  CHECK(holds(refusal("copy --runtime").value_or(""), "plain|cudajl-5.1|cudajl-5.4|"));
}

TEST_CASE("a flag takes no value", "[cli]") {
  CHECK(holds(refusal("copy --json=true").value_or(""), "--json takes no value"));
  CHECK(holds(refusal("copy --unified=").value_or(""), "--unified takes no value"));
  CHECK(holds(refusal("copy --unified --cold=1").value_or(""), "--cold takes no value"));
}

TEST_CASE("an option is given once, but for outputs and flags", "[cli]") {
  for (const std::string option : {"--gpus 0", "--size 4", "--engine kernel", "--samples 5"}) {
    INFO(option);
    const auto message = refusal("copy " + option + " " + option);
    REQUIRE(message);
    CHECK(holds(*message, option.substr(0, option.find(' ')) + " is given 2 times"));
  }
  CHECK(request("copy -q -q --json --json").quiet);
  CHECK(request("copy -o a.json -o a.csv -o a.md").outputs.size() == 3);
}

TEST_CASE("options that contradict each other are refused", "[cli]") {
  const std::string line = GENERATE(
      "--memory device --unified", "--prefetch array", "--memory device --prefetch array",
      "--prefetch once", "--unified --prefetch slice --no-prefetch", "--verify ends --no-verify",
      "--format csv --json", "--json --format text", "--host-devices 2",
      "--backend cuda --host-devices 2", "--append --force", "-o a.json -o a.json",
      "-o a.json -o ./a.json", "-o a.json -o csv:b/../a.json", "a.json");
  INFO(line);
  CHECK(refusal("copy " + line));
}

TEST_CASE("what is for managed memory is refused with another memory", "[cli]") {
  const std::string option =
      GENERATE("--cold", "--advise preferred", "--advise accessed-by", "--advise read-mostly",
               "--counters", "--prefetch once", "--prefetch slice", "--prefetch array");
  const std::string memory = GENERATE("", " --memory device", " --runtime cudajl-5.4");
  const auto message = refusal("copy " + option + memory);
  INFO(option << memory);
  REQUIRE(message);
  CHECK(holds(*message, option));
  CHECK(holds(*message, "--unified"));
  CHECK_FALSE(refusal("copy --unified " + option));
  CHECK_FALSE(refusal("copy --memory managed " + option));
}

TEST_CASE("what changes no memory is accepted with any", "[cli]") {
  const std::string line =
      GENERATE("--advise none", "--owner-wait event", "--peer off", "--threads single", "--until 1",
               "--timeline -", "--timeline t.json");
  INFO(line);
  CHECK_FALSE(refusal("copy " + line));
}

TEST_CASE("a preset's prefetch is no option that was given", "[cli]") {
  for (const auto& word : vocabulary<Runtime>) {
    const CaseSpec spec = copy_case("--runtime " + std::string(word.name));
    CHECK(spec.runtime == word.value);
    CHECK(spec.memory == MemoryKind::device);
    CHECK_FALSE(spec.prefetch);
    CHECK_FALSE(spec.owner_wait);
    CHECK_FALSE(spec.threads);
  }
}

TEST_CASE("an explicit option beside a preset is kept, whatever the order", "[cli]") {
  const std::string line =
      GENERATE("--runtime cudajl-5.4 --prefetch none --owner-wait none --threads pool",
               "--threads pool --no-prefetch --owner-wait none --runtime cudajl-5.4");
  const CaseSpec spec = copy_case("--unified " + line);
  CHECK(spec.runtime == Runtime::cudajl_5_4);
  CHECK(spec.prefetch == Prefetch::none);
  CHECK(spec.owner_wait == OwnerWait::none);
  CHECK(spec.threads == Threads::pool);
}

TEST_CASE("a timeline goes to a file of its own, or as bars into text", "[cli]") {
  CHECK(holds(refusal("copy --timeline a.json -o ./a.json").value_or(""), "--timeline 'a.json'"));
  CHECK(holds(refusal("copy -o a.json --timeline b/../a.json").value_or(""), "another file"));
  CHECK_FALSE(refusal("copy --timeline a.json -o b.json"));
  CHECK_FALSE(refusal("copy --timeline a.json --json"));
  CHECK_FALSE(refusal("copy --timeline - -o a.json --format text"));
  for (const std::string format : {"json", "jsonl", "csv", "markdown"})
    CHECK(
        holds(refusal("copy --timeline - --format " + format).value_or(""), "not into " + format));
}

TEST_CASE("a dry run has no timeline", "[cli]") {
  const std::string timeline = GENERATE("-", "t.json");
  const auto message = refusal("copy --dry-run --timeline " + timeline);
  REQUIRE(message);
  CHECK(holds(*message, "--dry-run"));
  CHECK(holds(*message, "--timeline"));
}

TEST_CASE("options that say the same twice are accepted", "[cli]") {
  const std::string line = GENERATE(
      "--memory managed --unified", "--prefetch none --no-prefetch", "--verify none --no-verify",
      "--format json --json", "--memory device --prefetch none", "--memory device --no-prefetch");
  INFO(line);
  CHECK_FALSE(refusal("copy " + line));
}

TEST_CASE("show wants files, each input read once and none overwritten", "[cli]") {
  CHECK(holds(refusal("show").value_or(""), "FILE"));
  CHECK(holds(refusal("show - -").value_or(""), "stdin"));
  CHECK(holds(refusal("show a.json -o ./a.json").value_or(""), "input"));
  CHECK(request("show a.json a.json").files.size() == 2);
  CHECK(request("show a.json --histogram log -o b.md").histogram == HistogramScale::log);
  CHECK(request("show a.json").cases.empty());
}

TEST_CASE("a word apart from --measure is answered by how it is written", "[cli]") {
  CHECK(holds(refusal("topo --measure pairs").value_or(""),
              "unexpected argument 'pairs'; write --measure=pairs"));
  CHECK(holds(refusal("topo --measure x").value_or(""), "'x'; see mgpu topo --help"));
  CHECK(holds(refusal("topo pairs").value_or(""), "'pairs'; see mgpu topo --help"));
}

TEST_CASE("topo takes a backend and outputs", "[cli]") {
  const Request r = request("topo --backend host --host-devices 2 --json -o t.md");
  CHECK(r.command == Command::topo);
  CHECK(r.host_devices == 2);
  CHECK(r.format == Format::json);
  CHECK(r.outputs.size() == 1);
  CHECK(r.cases.empty());
}

TEST_CASE("help is asked for in many ways and wins over what is wrong beside it", "[cli]") {
  const std::string copy_help = immediate("copy --help");
  CHECK(holds(copy_help, "--owner-wait none|host|event"));
  CHECK(holds(copy_help, "--runtime WORD"));
  CHECK(holds(copy_help, "mgpu copy --"));
  CHECK(immediate("copy -h") == copy_help);
  CHECK(immediate("help copy") == copy_help);
  CHECK(immediate("copy --size 4G --frob x --help") == copy_help);
  CHECK(immediate("help") == immediate("--help"));
  CHECK(immediate("-h") == immediate("--help"));
  CHECK(holds(immediate("--help"), "topo"));
  CHECK(immediate("show --help") != immediate("topo --help"));
}

TEST_CASE("mgpu alone is a usage error that says what can be done", "[cli]") {
  CHECK(refusal(Args{}) == immediate("--help"));
}

TEST_CASE("help shows every option and every word within 80 columns", "[cli]") {
  for (const CommandInfo& command : option_tree()) {
    const std::string help = immediate(command.name + " --help");
    for (const OptionInfo& option : command.options) {
      for (const std::string& one : option.names) CHECK(holds(help, one));
      for (const std::string& word : option.words) CHECK(holds(help, word));
    }
    std::istringstream in(help);
    for (std::string line; std::getline(in, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
    }
  }
}

TEST_CASE("the version comes with the features built in", "[cli]") {
  const std::string text = immediate("--version");
  CHECK(text == "mgpu " + std::string(version) +
                    (has_cuda ? "\nfeatures: cuda hwloc\n" : "\nfeatures: hwloc\n"));
  CHECK(immediate("-V") == text);
  CHECK(immediate("copy --version") == text);
}

TEST_CASE("the option tree holds each command with names, words and kinds", "[cli]") {
  const auto tree = option_tree();
  REQUIRE(tree.size() == vocabulary<Command>.size() + 1);
  CHECK(tree[0].name.empty());
  CHECK(tree[0].options.size() == 2);
  const auto copy = std::ranges::find(tree, "copy", &CommandInfo::name);
  REQUIRE(copy != tree.end());
  const auto named = [&](const std::string& name) {
    return *std::ranges::find_if(copy->options, [&](const OptionInfo& option) {
      return std::ranges::find(option.names, name) != option.names.end();
    });
  };
  CHECK(named("-o").names == Args{"-o", "--output"});
  CHECK(named("-o").takes_value);
  CHECK(named("--engine").words == Args{"kernel", "memcpy"});
  CHECK(named("--access").words == Args{"4", "8", "16"});
  CHECK_FALSE(named("--unified").takes_value);
  CHECK(named("--unified").words.empty());
}

TEST_CASE("charts are files of copy, sweep and show alone", "[cli]") {
  const std::string file = GENERATE("a.gp", "a.svg", "a.png", "svg:a.txt", "png:a.json");
  INFO(file);
  for (const std::string command : {"copy", "sweep", "show a.jsonl"})
    CHECK(is_picture(request(command + " -o " + file).outputs.at(0).format));
  const auto message = refusal("topo -o " + file);
  if (file.find("svg") != file.npos) {  // there it is a graph
    CHECK_FALSE(message);
    return;
  }
  REQUIRE(message);
  CHECK(holds(*message, "'" + file + "'"));
  CHECK_FALSE(holds(*message, ".svg .png"));
}

TEST_CASE("a chart is never on stdout, nor drawn by a dry run", "[cli]") {
  const std::string format = GENERATE("gp", "svg", "png");
  for (const std::string command : {"copy", "sweep", "topo", "show a.json"})
    CHECK(holds(refusal(command + " --format " + format).value_or(""),
                "text, json, jsonl, csv, markdown"));
  for (const std::string command : {"copy", "sweep"})
    CHECK(holds(refusal(command + " --dry-run -o a." + format).value_or(""), "--dry-run"));
}
