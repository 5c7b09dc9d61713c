// SPDX-License-Identifier: MIT
#include "report/report.hpp"

#include "report/renderers.hpp"

#include <array>

namespace mgpu {
namespace {

struct Renderer {
  Format format;
  std::string (*render)(const Report&, const RenderOptions&);
};
constexpr auto renderers = std::to_array<Renderer>({
    {Format::text, render_text},
    {Format::json, render_json},
    {Format::jsonl, render_json_lines},
    {Format::csv, render_csv},
    {Format::markdown, render_markdown},
    {Format::xml, render_xml},
    {Format::gp, render_gp},
    {Format::dot, render_dot},
});

}  // namespace

std::string render(Format format, const Report& report, const RenderOptions& options) {
  for (const Renderer& row : renderers)
    if (row.format == format) return row.render(report, options);
  throw Error(ErrorKind::runtime, "no renderer for format " + std::string(name(format)));
}

}  // namespace mgpu
