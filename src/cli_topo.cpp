// SPDX-License-Identifier: MIT
#include "cli_topo.hpp"

#include "model/error.hpp"

#include <string>
#include <utility>

namespace mgpu {
namespace {

constexpr double cell_seconds = 0.1;

}  // namespace

void add_matrix(Options& o, Draft& d) {
  Request& request = d.request;
  Options::Names measures;
  for (const auto& word : vocabulary<Measure>) measures.emplace_back(word.name);
  o.group("Measuring");
  o.optional_words(
      "--measure", std::move(measures),
      "prove peer access and measure rates and latencies: of each device alone, each pair and each "
      "GPU with the host; all: also of one with all others at once",
      [&request](const std::string& text) { request.measure = parse_word<Measure>(text); });
  o.value(
      {"--gpus"}, "LIST", "devices to measure: all, 0,2-3, UUIDs, PCI addresses (default: all)",
      [&request](const std::string& text) { request.matrix.gpus = parse_gpus(text, "--gpus"); });
  o.value(
      {"--size"}, "SIZE", "bytes of a copy (default: 64MiB)",
      [&request](const std::string& text) { request.matrix.size = parse_bytes(text, "--size"); });
  request.sampling.seconds = cell_seconds;
  o.number("--seconds", request.sampling.seconds, false, "of sampling, each cell");
  o.word<Engine>("--engine", request.matrix.engine,
                 "a copy kernel, or the driver's copies (default: each)");
  o.number("--timeout", request.sampling.timeout, true,
           "seconds that one step may take; 0: for ever");
  o.flag({"--no-verify"}, d.no_verify, "do not check the copied bytes");
  o.flag({"--dry-run"}, request.dry_run, "print the cells and the time they take");
  add_machine(o, d);
}

void settle_matrix(Draft& d) {
  const Request& request = d.request;
  if (request.measure) return;
  const std::pair<bool, std::string_view> needless[] = {
      {!request.matrix.gpus.empty(), "--gpus"},
      {request.matrix.size.has_value(), "--size"},
      {request.sampling.seconds != cell_seconds, "--seconds"},
      {request.matrix.engine.has_value(), "--engine"},
      {d.no_verify, "--no-verify"},
      {request.dry_run, "--dry-run"},
  };
  for (const auto& [given, option] : needless)
    if (given) throw usage_error("{} is for what is measured; add --measure", option);
}

void add_machine(Options& o, Draft& d) {
  o.value({"--machine"}, "FILE", "plan for the machine that mgpu topo --json recorded in FILE",
          [&d](const std::string& text) {
            if (text.empty())
              throw usage_error("--machine '' names no file; write --machine topo.json");
            d.request.machine_file = text;
          });
}

void check_machine(const Request& request, Command command) {
  if (request.machine_file.empty() || request.dry_run) return;
  if (command == Command::topo)
    throw usage_error(
        "--machine '{}' is no machine to measure on; add --measure --dry-run, or use "
        "mgpu show",
        request.machine_file);
  throw usage_error("--machine '{}' is no machine to measure on; add --dry-run",
                    request.machine_file);
}

}  // namespace mgpu
