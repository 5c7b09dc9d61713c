// SPDX-License-Identifier: MIT
// The files of a command line: what their names say, and which must not be the same. Opens none.
#pragma once

#include "model/request.hpp"

#include <string>
#include <vector>

namespace mgpu {

/// What a command can write beside what stdout may carry: nothing; JUnit; JUnit and charts; a graph
/// for Graphviz or drawn by it; all of these.
enum class Writes { reports, reports_and_tests, reports_and_charts, reports_and_graphs, anything };

/// In the order of the vocabulary.
std::vector<Format> formats(Writes writes);

/// A path whose extension says the format, or "json:PATH". Throws Error{usage}, also for a format
/// that is not written.
OutputSpec parse_output(const std::string& text, Writes writes);

/// A file that can grow by a line a case. Throws Error{usage}.
std::string parse_resume(const std::string& text);

/// A file to read; stdin (-) is one too. Throws Error{usage}.
std::string parse_baseline(const std::string& text);

/// A file to write. Throws Error{usage}.
std::string parse_exclude(const std::string& text);

/// Throws Error{usage} where a file would be read or written twice. The file of --resume is an
/// output itself, so it is dropped from the outputs.
void settle_files(Request& request);

}  // namespace mgpu
