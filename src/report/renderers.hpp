// SPDX-License-Identifier: MIT
// One function a format, for the table in report.cpp. Internal to the room.
#pragma once

#include "report/report.hpp"

#include <span>
#include <string>
#include <vector>

namespace mgpu {

std::string render_text(const Report& report, const RenderOptions& options);
std::string render_json(const Report& report, const RenderOptions& options);
std::string render_json_lines(const Report& report, const RenderOptions& options);
std::string render_csv(const Report& report, const RenderOptions& options);
std::string render_markdown(const Report& report, const RenderOptions& options);
std::string render_xml(const Report& report, const RenderOptions& options);
std::string render_gp(const Report& report, const RenderOptions& options);

/// A topology for Graphviz; Error{runtime} for every other document.
std::string render_dot(const Report& report, const RenderOptions& options);

/// Trials of more than one case as one table, and what they tell together.
std::string sweep_text(const Report& report, const RenderOptions& options);

/// The parts of the text of a topology, of a plan and of a case's devices: table, names, states.
std::string topology_text(const Report& report);
std::string plan_text(const Report& report);
std::string devices_text(const CaseResult& result, const Machine& machine);

/// "GPU 0: 00000000:17:00.0  GPU-9a1e0c5d  NVIDIA H200" for each device that copies or holds an
/// array.
std::vector<std::string> device_lines(std::span<const CaseResult> results, const Machine& machine);

}  // namespace mgpu
