// SPDX-License-Identifier: MIT
#include "cli.hpp"

#include "cli_commands.hpp"
#include "cli_topo.hpp"
#include "model/error.hpp"
#include "version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mgpu {
namespace {

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
  return {fmt::format("mgpu {}\nfeatures: {}\n", version, fmt::join(features, " "))};
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
    else if (output.format == Format::xml)
      throw usage_error(
          "--dry-run takes no samples, so --output '{}' would test nothing; leave one out",
          output.path);
}

void check_timeline(const Request& request) {
  if (request.timeline == "-" && request.format != Format::text)
    throw usage_error("--timeline - prints bars into text, not into {}; write --timeline FILE.json",
                      name(request.format));
}

void settle_rule(Draft& d, Command command) {
  Request& r = d.request;
  if (command != Command::compare && r.baseline.empty() && (d.metric || d.tolerance))
    throw usage_error("{} is for a comparison; add --baseline FILE or leave it out",
                      d.metric ? "--metric" : "--tolerance");
  r.compare = {d.metric.value_or(r.compare.metric), d.tolerance.value_or(r.compare.tolerance),
               command == Command::compare && r.force};
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
  if (command == Command::compare && r.files.size() != 2)
    throw usage_error("mgpu compare needs two files, BASE and NEW, not {}", r.files.size());
  if (command == Command::merge && r.files.empty())
    throw usage_error("mgpu merge needs a FILE of each node, as saved by mgpu copy -o run.jsonl");
  settle_rule(d, command);
  check_machine(r, command);
  if (command == Command::topo) settle_matrix(d);
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
  for (const CommandRow& row : command_rows()) {
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
  for (const CommandRow& row : command_rows()) {
    const Options options = command_options(row, draft);
    tree.push_back({std::string(name(row.command)), summary(row.command), options.info()});
  }
  return tree;
}

}  // namespace mgpu
