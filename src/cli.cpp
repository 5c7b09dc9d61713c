// SPDX-License-Identifier: MIT
#include "cli.hpp"

#include "cli_files.hpp"
#include "cli_options.hpp"
#include "cli_sweep.hpp"
#include "model/error.hpp"
#include "version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mgpu {
namespace {

/// What is written, before options are weighed against each other.
struct Draft {
  Request request;
  CaseSpec spec;
  AxisCollector axes{spec};
  std::optional<MemoryKind> memory;
  std::optional<Verify> verify;
  std::optional<Format> format;
  bool unified = false, no_prefetch = false, no_verify = false, json = false, no_affinity = false;
  bool help = false, version = false, list_presets = false;
};

double parse_percent(const std::string& text, std::string_view option) {
  return parse_number(text.ends_with('%') ? text.substr(0, text.size() - 1) : text, option);
}

std::string parse_timeline(const std::string& text) {
  if (text != "-" && std::filesystem::path(text).extension() != ".json")
    throw usage_error("--timeline '{}' is a Chrome trace: end it in .json; - prints bars", text);
  return text;
}

void add_backend(Options& o, Draft& d) {
  o.group("Devices");
  o.word<BackendKind>("--backend", d.request.backend, "what copies");
  o.count("--host-devices", d.request.host_devices, 1, 1024,
          "CPU devices of the host backend (default: one per NUMA node; two on a single node)");
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
}

void add_timeline(Options& o, Draft& d) {
  o.value({"--timeline"}, "FILE.json",
          "write the typical and the worst sample, step by step, as a Chrome trace; - prints bars",
          [&](const std::string& text) { d.request.timeline = parse_timeline(text); });
}

void add_output(Options& o, Draft& d, Writes writes) {
  Request& request = d.request;
  const bool charts = writes == Writes::reports_and_charts;
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
                  charts ? "; a chart: .gp .svg .png" : ""),
      [&request, writes](const std::string& text) {
        request.outputs.push_back(parse_output(text, writes));
      },
      true);
  o.flag({"--append"}, request.append, "add to a .jsonl file that is there");
  o.flag({"--force"}, request.force, "replace a .jsonl file that is there");
  if (charts)
    o.word<HistogramScale>("--histogram", request.histogram, "vertical scale of the histogram");
  o.word<Color>("--color", request.color, "colours in text on stdout");
  o.flag({"-q", "--quiet"}, request.quiet, "neither progress nor notes on stderr");
}

/// A flag such as --unified must not contradict the option that it stands for.
template <class E>
void agree(std::optional<E>& given, bool flag, E meant, std::string_view flag_name,
           std::string_view option) {
  if (!flag) return;
  if (given && *given != meant)
    throw usage_error("{} is {} {} and contradicts {} {}; give one of them", flag_name, option,
                      name(meant), option, name(*given));
  given = meant;
}

void agree_case(Draft& d) {
  agree(d.memory, d.unified, MemoryKind::managed, "--unified", "--memory");
  agree(d.spec.prefetch, d.no_prefetch, Prefetch::none, "--no-prefetch", "--prefetch");
  d.spec.memory = d.memory.value_or(d.spec.memory);
}

void add_copy(Options& o, Draft& d) {
  add_backend(o, d);
  add_case(o, d.spec, d);
  add_sampling(o, d);
  add_timeline(o, d);
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
  add_output(o, d, Writes::reports_and_charts);
}

void add_topo(Options& o, Draft& d) {
  add_backend(o, d);
  add_output(o, d, Writes::reports);
}

void add_show(Options& o, Draft& d) {
  o.files(d.request.files);
  add_output(o, d, Writes::reports_and_charts);
}

struct CommandRow {
  Command command;
  void (*add)(Options&, Draft&);
  std::string_view examples;
  std::string_view notes = "";
};

constexpr CommandRow command_rows[] = {
    {Command::copy, add_copy,
     "  mgpu copy --gpus 0,1 --size 1GiB/gpu\n"
     "  mgpu copy --gpus 0,1 --home 0 --unified --size 4GB\n"
     "  mgpu copy --gpus 0,1 --home 0 --unified --size 4GB --runtime cudajl-5.4\n"
     "  mgpu copy --backend host --size 256MiB --seconds 1 --json\n"
     "  mgpu copy --engine memcpy -o run.json -o run.md\n"},
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
     "  mgpu topo --backend host --json\n"},
    {Command::show, add_show,
     "  mgpu show run.json\n"
     "  mgpu show run.jsonl --format csv\n"},
};

std::string summary(Command command) {
  for (const auto& word : vocabulary<Command>)
    if (word.value == command) return std::string(word.help);
  return "";
}

constexpr std::string_view about =
    "how fast do GPUs copy, alone and together, and if they are slow together, why";

void add_last(Options& o, Draft& d) {
  o.group("Help");
  o.flag({"-h", "--help"}, d.help, "show this help");
  o.flag({"-V", "--version"}, d.version, "show the version and the features built in");
}

Options command_options(const CommandRow& row, Draft& draft) {
  Options options("mgpu " + std::string(name(row.command)), summary(row.command));
  row.add(options, draft);
  add_last(options, draft);
  return options;
}

Options top_options(Draft& draft) {
  Options options("mgpu", std::string(about));
  add_last(options, draft);
  return options;
}

std::string top_help(const Options& options) {
  std::string commands = "\nCommands:\n";
  for (const auto& word : vocabulary<Command>)
    commands += fmt::format("  {:<14}{}\n", word.name, word.help);
  commands += fmt::format("  {:<14}{}\n", "help COMMAND", "show the options of a command");
  return options.help(commands, "  mgpu copy\n  mgpu copy --backend host\n  mgpu help copy\n");
}

Immediate presets_text() {
  std::string text;
  for (const auto& word : vocabulary<Preset>)
    text += fmt::format("{:<14}{}\n", word.name, word.help);
  return {text};
}

Immediate version_text() {
  return {fmt::format("mgpu {}\nfeatures: {}hwloc\n", version, has_cuda ? "cuda " : "")};
}

/// A preset's prefetch was not asked for: with other memory it does nothing.
void check_managed(const CaseSpec& spec, const Sampling& sampling) {
  if (spec.memory == MemoryKind::managed) return;
  const Prefetch prefetch = spec.prefetch.value_or(Prefetch::none);
  const std::pair<bool, std::string> for_managed[] = {
      {prefetch != Prefetch::none, fmt::format("--prefetch {}", name(prefetch))},
      {spec.cold, "--cold"},
      {spec.advise != Advice::none, fmt::format("--advise {}", name(spec.advise))},
      {sampling.counters, "--counters"},
  };
  for (const auto& [given, option] : for_managed)
    if (given)
      throw usage_error("{} is for managed memory alone; add --unified or leave it out", option);
}

void check_dry_run(const Request& request) {
  if (!request.dry_run) return;
  if (!request.timeline.empty())
    throw usage_error(
        "--dry-run takes no samples, so --timeline would show none; give one of them");
  for (const OutputSpec& output : request.outputs)
    if (is_picture(output.format))
      throw usage_error(
          "--dry-run takes no samples, so --output '{}' would draw nothing; leave one out",
          output.path);
}

void check_timeline(const Request& request) {
  if (request.timeline == "-" && request.format != Format::text)
    throw usage_error("--timeline - prints bars into text, not into {}; write --timeline FILE.json",
                      name(request.format));
}

/// A flag is a value of the option that it stands for, also where no list is given.
std::vector<Axis> sweep_axes(Draft& d) {
  const std::pair<bool, std::string_view> flags[] = {{d.unified, "--memory"},
                                                     {d.no_prefetch, "--prefetch"},
                                                     {d.spec.cold, "--cold"},
                                                     {d.spec.bidirectional, "--bidirectional"}};
  for (const auto& [given, option] : flags)
    if (given) d.axes.take(option);
  return d.axes.axes(d.request.preset.has_value());
}

/// What must hold between options on every machine.
Request settle(Draft& d, Command command) {
  Request& r = d.request;
  agree_case(d);
  agree(d.verify, d.no_verify, Verify::none, "--no-verify", "--verify");
  agree(d.format, d.json, Format::json, "--json", "--format");
  r.sampling.verify = d.verify.value_or(r.sampling.verify);
  r.format = d.format.value_or(r.format);

  if (d.no_affinity) r.affinity = Affinity::none;
  if (command == Command::copy) check_managed(d.spec, r.sampling);
  check_dry_run(r);
  check_timeline(r);
  r.sampling.timeline = !r.timeline.empty();
  if (r.host_devices && r.backend != BackendKind::host)
    throw usage_error("--host-devices {} is for CPUs as devices; add --backend host",
                      *r.host_devices);
  if (r.append && r.force)
    throw usage_error("--append keeps what a file holds and --force drops it; give one of them");
  if (r.append && !r.resume.empty())
    throw usage_error(
        "--append measures every case again and --resume only what is missing; give one of them");
  if (command == Command::show && r.files.empty())
    throw usage_error("mgpu show needs a FILE, as saved by mgpu copy -o run.json; - is stdin");
  settle_files(r);
  r.command = command;
  if (command == Command::copy) r.cases = {d.spec};
  if (command == Command::sweep) r.axes = sweep_axes(d);
  return std::move(r);
}

std::variant<Request, Immediate> parse_command(const CommandRow& row,
                                               std::span<const std::string> args) {
  Draft draft;
  Options options = command_options(row, draft);
  options.parse(args);
  if (draft.help) return Immediate{options.help(row.notes, row.examples)};
  if (draft.version) return version_text();
  if (draft.list_presets) return presets_text();
  options.apply();
  return settle(draft, row.command);
}

}  // namespace

std::variant<Request, Immediate> parse_request(std::span<const std::string> args) {
  Draft draft;
  Options top = top_options(draft);
  if (args.empty()) throw Error{ErrorKind::usage, top_help(top)};

  // "help copy" is "copy --help", and "help" alone "--help".
  std::vector<std::string> words(args.begin(), args.end());
  if (words.front() == "help") {
    words.erase(words.begin());
    words.insert(words.begin() + (words.empty() ? 0 : 1), "--help");
  }
  for (const CommandRow& row : command_rows) {
    if (words.front() != name(row.command)) continue;
    auto parsed = parse_command(row, std::span(words).subspan(1));
    if (auto* request = std::get_if<Request>(&parsed)) {
      request->argv = {"mgpu"};
      request->argv.insert(request->argv.end(), args.begin(), args.end());
    }
    return parsed;
  }
  if (!words.front().starts_with('-')) {
    std::vector<std::string> known;
    for (const auto& word : vocabulary<Command>) known.emplace_back(word.name);
    throw usage_error("unknown command '{}'{}", words.front(),
                      did_you_mean(words.front(), known,
                                   fmt::format("; it is one of {}", fmt::join(known, ", "))));
  }
  top.parse(words);
  if (draft.help) return Immediate{top_help(top)};
  if (draft.version) return version_text();
  top.apply();
  throw usage_error("no command; see mgpu --help");
}

std::vector<CommandInfo> option_tree() {
  Draft draft;
  Options top = top_options(draft);
  std::vector<CommandInfo> tree = {{"", std::string(about), top.info()}};
  for (const CommandRow& row : command_rows) {
    const Options options = command_options(row, draft);
    tree.push_back({std::string(name(row.command)), summary(row.command), options.info()});
  }
  return tree;
}

}  // namespace mgpu
