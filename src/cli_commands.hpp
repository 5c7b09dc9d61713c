// SPDX-License-Identifier: MIT
// Which options each command has. Weighs none against another.
#pragma once

#include "cli_files.hpp"
#include "cli_options.hpp"
#include "cli_sweep.hpp"
#include "model/request.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace mgpu {

/// What is written, before options are weighed against each other.
struct Draft {
  Request request;
  CaseSpec spec;
  AxisCollector axes{spec};
  std::optional<MemoryKind> memory;
  std::optional<Verify> verify;
  std::optional<Format> format;
  std::optional<Metric> metric;
  std::optional<double> tolerance;
  bool unified = false, no_prefetch = false, no_verify = false, json = false, no_affinity = false;
  bool help = false, version = false, list_presets = false;
};

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

/// Throws Error{usage} where the words of a case contradict each other.
void agree_case(Draft& d);

/// Groups of options that commands share.
void add_backend(Options& o, Draft& d);
void add_sampling(Options& o, Draft& d);
void add_output(Options& o, Draft& d, Writes writes);

struct CommandRow {
  Command command;
  void (*add)(Options&, Draft&);
  std::string_view examples;
  std::string_view notes = "";
};

/// In the order of the vocabulary.
std::span<const CommandRow> command_rows();

}  // namespace mgpu
