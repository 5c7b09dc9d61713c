// SPDX-License-Identifier: MIT
// The composition: parse, plan, measure, render, write. Turns every error into a message and an
// exit code.
#pragma once

#include "backend/backend.hpp"
#include "team.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// Where a run's bytes go and what it may do to the process. Tests pass strings, main passes the
/// process' own.
struct Console {
  std::function<int(std::string_view)> out;  ///< stdout; 0, or the errno that writing met
  std::function<void(std::string_view)> err;
  std::function<std::string()> in;  ///< all of stdin
  std::function<void(int)> leave;  ///< ends the process at once with this code, without destructors
  bool out_is_terminal = false, err_is_terminal = false;
  int width = 0;          ///< columns of a terminal on stdout, else 0
  bool no_color = false;  ///< NO_COLOR is set and not empty
  bool handle_signals =
      false;  ///< take SIGINT, SIGTERM and SIGHUP; after the report the process ends by them
};

/// Runs one command line (without the program's name) and gives the exit code. Where a launcher
/// started several processes, `join` is asked for their team. Blocking. Never throws.
int run_app(const std::vector<std::string>& args, const Console& console,
            std::span<const BackendRow> backends, const Join& join = nullptr);

}  // namespace mgpu
