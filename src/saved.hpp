// SPDX-License-Identifier: MIT
// Results in files: read, and those of one machine put together. Judges and shows nothing.
#pragma once

#include "app.hpp"
#include "model/result.hpp"

#include <string>
#include <vector>

namespace mgpu {

/// All bytes of a file, of stdin for "-". Blocking; throws Error{usage}.
std::string read_file(const std::string& path, const Console& console);

/// The documents of a .jsonl file that is about to be appended to, and of which a killed run may
/// have left a fragment. Throws Error{usage} for what is not ours.
std::vector<Report> saved_lines(const std::string& path, const Console& console);

/// The documents of a file; `notes` gets what was ignored. Throws Error{usage} where one holds no
/// trials.
std::vector<Report> saved_trials(const std::string& path, const Console& console,
                                 std::vector<std::string>& notes);

/// Neighbours that hold trials of the same devices become one.
std::vector<Report> merged(std::vector<Report> documents);

}  // namespace mgpu
