// SPDX-License-Identifier: MIT
#include "outputs.hpp"

#include "pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mgpu {
namespace {

// Whether a regular file is written anew after every case.
bool is_rewritten(const Output& output) {
  return output.format() != Format::jsonl && !is_picture(output.format()) && output.incremental();
}

}  // namespace

bool wants_color(const Request& request, const Console& console) {
  return request.color == Color::always ||
         (request.color == Color::automatic && console.out_is_terminal && !console.no_color);
}

void print(const Console& console, std::string_view text) {
  const int error = console.out(text);
  if (error != 0 && error != EPIPE)
    throw Error(ErrorKind::runtime,
                fmt::format("cannot write to stdout: {}", std::strerror(error)));
}

void complain(const Console& console, std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') c = '?';
  console.err(text);
}

std::string rendered(Format format, const Report& report, const RenderOptions& options) {
  if (!is_picture(format) || format == Format::dot) return render(format, report, options);
  if (report.kind == ReportKind::topology && format != Format::gp)
    return draw(Painter::graphviz, format, render(Format::dot, report, options));
  std::string script = render_gnuplot(report, format);
  return format == Format::gp ? script : draw(Painter::gnuplot, format, script);
}

bool has_result(const Report& report) {
  if (report.kind == ReportKind::trials) return !report.cases.empty();
  if (report.kind == ReportKind::fleet)
    return !report.fleet->nodes.empty() || !report.fleet->missing.empty();
  return true;
}

void Outputs::open(std::span<const OutputSpec> specs) {
  for (const OutputSpec& spec : specs) {
    if (spec.format == Format::svg || spec.format == Format::png)
      require_painter(request_.command == Command::topo ? Painter::graphviz : Painter::gnuplot);
    // The file of --resume has what it keeps already.
    const bool resumed = spec.path == request_.resume;
    files_.emplace_back(spec, request_.append || resumed, request_.force && !resumed);
  }
}

void Outputs::append(std::string_view line) {
  for (Output& file : files_)
    if (file.format() == Format::jsonl) attempt([&] { file.write(line); });
}

bool Outputs::updated() const {
  return std::ranges::any_of(files_, is_rewritten);
}

void Outputs::update(const Report& report) {
  RenderOptions plain;
  plain.histogram = request_.histogram;
  for (Output& file : files_)
    if (is_rewritten(file)) attempt([&] { file.write(rendered(file.format(), report, plain)); });
}

void Outputs::finish(const Report& report, Lines lines) {
  RenderOptions plain;
  plain.histogram = request_.histogram;
  const bool nothing = !has_result(report);
  for (Output& file : files_) {
    if (file.format() == Format::jsonl && lines == Lines::cases) continue;
    if (nothing &&
        (is_picture(file.format()) || (file.holds_something() && file.format() != Format::xml)))
      continue;
    attempt([&] { file.write(rendered(file.format(), report, plain)); });
  }
}

void Outputs::print_report(const Report& report) {
  if (!has_result(report) && request_.format != Format::json) return;
  RenderOptions options;
  options.histogram = request_.histogram;
  options.color = wants_color(request_, console_);
  options.width = console_.width;
  attempt([&] { print(console_, render(request_.format, report, options)); });
}

void Outputs::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (told_ == error.what()) return;
    told_ = error.what();
    failed_(error);
  }
}

}  // namespace mgpu
