// SPDX-License-Identifier: MIT
#include "cli_commands.hpp"

#include "cli_topo.hpp"
#include "model/error.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>

namespace mgpu {
namespace {

double parse_percent(const std::string& text, std::string_view option, bool zero_allowed = false) {
  return parse_number(text.ends_with('%') ? text.substr(0, text.size() - 1) : text, option,
                      zero_allowed);
}

Expectation parse_expectation(const std::string& text) {
  constexpr std::string_view option = "--expect";
  Expectation wanted;
  wanted.text = text;
  std::string_view rest = text;
  const auto take = [&] {
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(part.size() + 1);
    return part;
  };
  while (rest.find(':') != rest.npos) {
    const std::string_view next = take();
    if (wanted.basis)
      throw bad_value(option, text, "has too many parts: write 64MiB:copied:300GB/s");
    wanted.basis = parse_word<Basis>(next);
    if (wanted.basis) continue;
    if (wanted.size)
      throw bad_value(option, text,
                      "says neither copied nor moved behind its size: write 64MiB:copied:300GB/s");
    wanted.size = parse_size(next, option);
  }
  wanted.rate = parse_rate(rest, option);
  return wanted;
}

std::string parse_timeline(const std::string& text) {
  if (text != "-" && std::filesystem::path(text).extension() != ".json")
    throw usage_error("--timeline '{}' is a Chrome trace: end it in .json; - prints bars", text);
  return text;
}

void add_case(Options& o, CaseSpec& spec, Draft& d) {
  o.value({"--gpus"}, "LIST",
          "devices that copy, in this order: all, 0,2-3, UUIDs, PCI addresses (default: all; that "
          "of --to where --from and --to both name one)",
          [&](const std::string& text) { spec.gpus = parse_gpus(text, "--gpus"); });

  o.group("Arrays");
  o.value({"--size"}, "SIZE",
          "bytes of the source array, as of the destination: 4GB, 1.5GiB, 64MiB/gpu (default: "
          "1GiB/gpu; 256MiB/gpu on CPUs)",
          [&](const std::string& text) { spec.size = parse_size(text, "--size"); });
  o.word<MemoryKind>("--memory", d.memory, "kind of memory (default: device)");
  o.flag({"--unified"}, d.unified, "the same as --memory managed");
  o.value({"--home"}, "PLACE",
          "where the arrays live: local (each slice with the device that copies it), one GPU, host "
          "(the NUMA node nearest that device) or host:N (default: local)",
          [&](const std::string& text) { spec.home = parse_place(text, "--home"); });
  o.value({"--from"}, "PLACE", "where the source lives (default: that of --home)",
          [&](const std::string& text) { spec.from = parse_place(text, "--from"); });
  o.value({"--to"}, "PLACE", "where the destination lives (default: that of --home)",
          [&](const std::string& text) { spec.to = parse_place(text, "--to"); });
  o.flag({"--bidirectional"}, spec.bidirectional,
         "copy a second pair of arrays the other way at the same time");
  o.count("--split", spec.split, 1, 65536,
          "slices, dealt to the devices in turn, each with a thread and a stream (default: one "
          "per device)");
  o.value({"--align"}, "SIZE",
          "where slices may meet, from the array's start (default: 2MiB for managed memory, "
          "else 16B)",
          [&](const std::string& text) { spec.align = parse_bytes(text, "--align"); });

  o.group("Copying");
  o.word<Engine>("--engine", spec.engine, "a copy kernel, or the driver's copies");
  o.words("--access", {"4", "8", "16"},
          fmt::format("bytes a thread of the kernel moves per access (default: {})", spec.access),
          [&](const std::string& text) { spec.access = std::stoi(text); });
  o.count("--batch", spec.batch, 1, 1'000'000, "copies, back to back, between two clock readings");
  o.word<Peer>("--peer", spec.peer, "access to the memory of other GPUs");

  o.group("Policies");
  o.word<Runtime>("--runtime", spec.runtime,
                  "the policies of a runtime; an option below still wins");
  o.word<Prefetch>("--prefetch", spec.prefetch,
                   "when managed memory is moved to the device that copies it (default: that of "
                   "--runtime; else once, but none where --home is given)");
  o.flag({"--no-prefetch"}, d.no_prefetch, "the same as --prefetch none");
  o.flag({"--cold"}, spec.cold, "bring managed arrays back to their place before every sample");
  o.word<OwnerWait>("--owner-wait", spec.owner_wait,
                    "how a stream waits for the one that used its array last (default: that of "
                    "--runtime, else none)");
  o.word<Advice>("--advise", spec.advise, "what the driver is told of managed memory");
  o.word<Threads>("--threads", spec.threads,
                  "which threads submit the copies (default: that of --runtime, else pool)");
}

void add_rule(Options& o, Draft& d) {
  o.word<Metric>("--metric", d.metric, "what is compared (default: median)");
  o.value(
      {"--tolerance"}, "PCT", "how much slower is not slower yet (default: 5)",
      [&d](const std::string& text) { d.tolerance = parse_percent(text, "--tolerance", true); });
}

void add_verdict(Options& o, Draft& d) {
  Request& request = d.request;
  o.group("Verdict");
  o.value(
      {"--expect"}, "RATE",
      "what the median must reach, else exit 8: 300GB/s; copied:300GB/s counts payload, moved: "
      "read + written (default where no link is crossed); 64MiB:copied:300GB/s is for cases of "
      "that size",
      [&request](const std::string& text) { request.expect.push_back(parse_expectation(text)); },
      true);
  o.value({"--baseline"}, "FILE", "a saved result that must not be faster, else exit 8",
          [&request](const std::string& text) { request.baseline = parse_baseline(text); });
  add_rule(o, d);
}

void add_timeline(Options& o, Draft& d) {
  o.value({"--timeline"}, "FILE.json",
          "write the typical and the worst sample, step by step, as a Chrome trace; - prints bars",
          [&](const std::string& text) { d.request.timeline = parse_timeline(text); });
}

}  // namespace

void agree_case(Draft& d) {
  agree(d.memory, d.unified, MemoryKind::managed, "--unified", "--memory");
  agree(d.spec.prefetch, d.no_prefetch, Prefetch::none, "--no-prefetch", "--prefetch");
  d.spec.memory = d.memory.value_or(d.spec.memory);
}

void add_backend(Options& o, Draft& d) {
  o.group("Devices");
  o.word<BackendKind>("--backend", d.request.backend, "what copies");
  o.count("--host-devices", d.request.host_devices, 1, 1024,
          "CPU devices of the host backend (default: one per NUMA node; two on a single node)");
}

void add_sampling(Options& o, Draft& d) {
  Sampling& sampling = d.request.sampling;
  o.group("Sampling");
  o.count("--samples", sampling.samples, 1, 1'000'000'000'000, "end after N samples");
  o.number("--seconds", sampling.seconds, false, "or once S seconds have passed");
  o.count("--warmup", sampling.warmup, 0, 1'000'000, "passes before the first sample");
  o.value({"--until"}, "PCT",
          "or once the median is known within PCT per cent, its 95% interval being that narrow",
          [&](const std::string& text) { sampling.until = parse_percent(text, "--until"); });
  o.number("--timeout", sampling.timeout, true, "seconds that one step may take; 0: for ever");
  o.word<Verify>("--verify", d.verify, "when the copied bytes are checked (default: ends)");
  o.flag({"--no-verify"}, d.no_verify, "the same as --verify none");
  o.flag({"--no-affinity"}, d.no_affinity, "pin neither threads nor host memory");
  o.flag({"--oversubscribe"}, sampling.oversubscribe, "managed arrays may exceed what is free");
  o.flag({"--counters"}, sampling.counters,
         "count the migrations of managed memory in an extra pass, with CUPTI");
  o.flag({"--dry-run"}, d.request.dry_run, "print the plan and measure nothing");
  add_machine(o, d);
}

namespace {

bool has_charts(Writes writes) {
  return writes == Writes::reports_and_charts || writes == Writes::anything;
}

void add_formats(Options& o, Draft& d, Writes writes) {
  Request& request = d.request;
  Options::Names words;
  for (const Format format : formats(Writes::reports)) words.emplace_back(name(format));
  o.group("Output");
  o.words("--format", std::move(words), "what stdout carries (default: text)",
          [&](const std::string& text) { d.format = parse_word<Format>(text); });
  o.flag({"--json"}, d.json, "the same as --format json");
  o.value(
      {"-o", "--output"}, "FILE",
      fmt::format("also write FILE; its extension says the format (.txt .json .jsonl .csv .md{}), "
                  "or its prefix: json:FILE; may be repeated",
                  writes == Writes::anything
                      ? "; JUnit: .xml; a chart: .gp .svg .png; a topology's graph: .dot .svg"
                  : has_charts(writes)                   ? "; JUnit: .xml; a chart: .gp .svg .png"
                  : writes == Writes::reports_and_graphs ? "; a graph: .dot .svg"
                                                         : "; JUnit: .xml"),
      [&request, writes](const std::string& text) {
        request.outputs.push_back(parse_output(text, writes));
      },
      true);
}

void add_looks(Options& o, Draft& d, Writes writes) {
  Request& request = d.request;
  if (has_charts(writes))
    o.word<HistogramScale>("--histogram", request.histogram, "vertical scale of the histogram");
  o.word<Color>("--color", request.color, "colours in text on stdout");
  o.flag({"-q", "--quiet"}, request.quiet, "neither progress nor notes on stderr");
}

}  // namespace

void add_output(Options& o, Draft& d, Writes writes) {
  add_formats(o, d, writes);
  o.flag({"--append"}, d.request.append, "add to a .jsonl file that is there");
  o.flag({"--force"}, d.request.force, "replace a .jsonl file that is there");
  add_looks(o, d, writes);
}

namespace {

void add_copy(Options& o, Draft& d) {
  add_backend(o, d);
  add_case(o, d.spec, d);
  add_sampling(o, d);
  add_timeline(o, d);
  add_verdict(o, d);
  add_output(o, d, Writes::reports_and_charts);
}

void add_sweep(Options& o, Draft& d) {
  add_backend(o, d);
  add_case(o, d.spec, d);
  d.axes.bind(o, [&d] { agree_case(d); });
  o.group("Table");
  o.word<Preset>("--preset", d.request.preset, "a known table of cases; options given win");
  o.flag({"--list-presets"}, d.list_presets, "show the known tables");
  o.value({"--resume"}, "FILE.jsonl",
          "keep the cases that FILE has, measure and add those that it lacks",
          [&](const std::string& text) { d.request.resume = parse_resume(text); });
  add_sampling(o, d);
  o.refuse("--timeline",
           "is not available in a sweep; show one case: mgpu copy --timeline FILE.json");
  add_verdict(o, d);
  add_output(o, d, Writes::reports_and_charts);
}

void add_topo(Options& o, Draft& d) {
  add_backend(o, d);
  add_matrix(o, d);
  add_output(o, d, Writes::reports_and_graphs);
}

void add_show(Options& o, Draft& d) {
  o.files(d.request.files, "FILE...");
  add_output(o, d, Writes::anything);
}

void add_compare(Options& o, Draft& d) {
  o.files(d.request.files, "BASE NEW");
  o.group("Rule");
  add_rule(o, d);
  add_formats(o, d, Writes::reports_and_tests);
  o.flag({"--force"}, d.request.force,
         "compare by position, whatever the cases are; and replace a .jsonl file that is there");
  add_looks(o, d, Writes::reports_and_tests);
}

void add_merge(Options& o, Draft& d) {
  o.files(d.request.files, "FILE...");
  o.group("Rule");
  o.value({"--outlier"}, "PCT",
          "how much a GPU may differ from the fleet's median, whatever the noise (default: 5)",
          [&d](const std::string& text) {
            d.request.outlier = parse_percent(text, "--outlier", true);
            if (d.request.outlier > 1e6)
              throw bad_value("--outlier", text, "is beyond any outlier: write --outlier 10");
          });
  o.value({"--exclude-file"}, "FILE",
          "write the nodes to leave out, as Slurm's --exclude takes them",
          [&d](const std::string& text) { d.request.exclude_file = parse_exclude(text); });
  add_output(o, d, Writes::reports_and_tests);
}

constexpr CommandRow rows[] = {
    {Command::copy, add_copy,
     "  mgpu copy --gpus 0,1 --size 1GiB/gpu\n"
     "  mgpu copy --gpus 0,1 --home 0 --unified --size 4GB\n"
     "  mgpu copy --gpus 0,1 --home 0 --unified --size 4GB --runtime cudajl-5.4\n"
     "  mgpu copy --backend host --size 256MiB --seconds 1 --json\n"
     "  mgpu copy --engine memcpy -o run.json -o run.md\n"
     "  mgpu copy --expect 3.5TB/s --baseline run.json -o verdict.xml\n"},
    {Command::sweep, add_sweep,
     "  mgpu sweep --gpus 0 --gpus 0,1 --size 1MiB..1GiB/gpu\n"
     "  mgpu sweep --unified --prefetch none,once,array --owner-wait none,host\n"
     "  mgpu sweep --preset issue-2615 --resume run.jsonl\n"
     "  mgpu sweep --backend host --split 1..8 --engine kernel,memcpy -o run.svg\n",
     "\nWhere ,... follows, a list: every combination is a case. Sizes and numbers may\n"
     "be ranges: A..B doubles from A up to B, A..B:F multiplies by F. If nothing else\n"
     "varies: --size 1MiB..1GiB.\n"},
    {Command::topo, add_topo,
     "  mgpu topo\n"
     "  mgpu topo --measure -o topo.json -o topo.svg\n"
     "  mgpu topo --measure=all --gpus 0-3 --engine memcpy\n"
     "  mgpu topo --backend host --json\n"},
    {Command::show, add_show,
     "  mgpu show run.json\n"
     "  mgpu show old.json new.json\n"
     "  mgpu show run.jsonl --format csv\n"},
    {Command::compare, add_compare,
     "  mgpu compare base.jsonl new.jsonl\n"
     "  mgpu compare base.json new.json --metric min --tolerance 3%\n"
     "  mgpu compare base.jsonl new.jsonl --format markdown -o verdict.xml\n",
     "\nA verdict needs a difference beyond the tolerance and beyond the noise. Run both\n"
     "sides in turns, ten times each with --append, for the surest one.\n"},
    {Command::merge, add_merge,
     "  mgpu merge node*.jsonl\n"
     "  mgpu merge --outlier 10 --exclude-file slow.txt results/*.json -o fleet.json\n"
     "  mgpu merge node*.jsonl -o fleet.xml\n",
     "\nA GPU is an outlier where its time differs from the fleet's median by more than\n"
     "--outlier and by more than 3.5 times the fleet's spread.\n"},
};

}  // namespace

std::span<const CommandRow> command_rows() {
  return rows;
}

}  // namespace mgpu
