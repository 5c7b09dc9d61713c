// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"
#include "report/comparison.hpp"
#include "report/fleet_page.hpp"
#include "report/histogram.hpp"
#include "report/phrases.hpp"
#include "report/renderers.hpp"
#include "report/styles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mgpu {
namespace {

/// One case as text, a part at a time.
class CaseText {
 public:
  CaseText(const Report& report, const CaseResult& result, const RenderOptions& options)
      : machine_(report.machine), result_(result), options_(options) {}

  std::string render() {
    if (result_.samples == 0) {
      out_ += wrapped(fmt::format("mgpu copy: {}, {}: {}", name(result_.outcome), phrase(),
                                  printable(result_.reason)),
                      1);
      if (!result_.file.empty()) add("file: " + printable(result_.file));
      add_verification();
      add_verdicts();
      return out_;
    }
    out_ += wrapped(fmt::format("mgpu copy: {}{}, {}",
                                counted(static_cast<std::uint64_t>(result_.samples), "sample"),
                                result_.round_medians.empty()
                                    ? ""
                                    : fmt::format(" in {} rounds", result_.round_medians.size()),
                                phrase()),
                    1, ", ");
    if (!result_.file.empty()) add("file: " + printable(result_.file));
    result_.samples == 1 ? add_single() : add_statistics();
    out_ += '\n';
    out_ += devices_text(result_, machine_);
    add_verification();
    if (result_.outcome == OutcomeKind::failed) add("failed: " + printable(result_.reason));
    add_median();
    add_rounds();
    add_costs();
    if (result_.counters) add("counters: " + counters_phrase(*result_.counters));
    add_marks();
    add("rates: copied is payload, moved is read + written; 1 GB is 1,000,000,000 bytes");
    add_causes();
    add_verdicts();
    return out_;
  }

 private:
  std::string phrase() const { return case_phrase(result_.what, machine_.backend); }

  std::string paint(std::string_view text, std::string_view style) const {
    return painted(text, style, options_.color);
  }

  void add(std::string_view line) { out_ += wrapped(fmt::format(" {}", line), 3); }

  std::string of_peak() const {
    if (!result_.of_peak) return "";
    return fmt::format(", {} of{} peak", percent(*result_.of_peak),
                       result_.bottleneck && *result_.bottleneck != Bottleneck::memory
                           ? fmt::format(" {}", bottleneck_noun(*result_.bottleneck))
                           : "");
  }

  // Figures of links count payload; where none is crossed the memory's traffic is what matters.
  const Rate& rate_of(Basis basis) const {
    return basis == Basis::moved ? result_.rates.moved : result_.rates.copied;
  }
  Basis other_basis() const { return result_.basis == Basis::moved ? Basis::copied : Basis::moved; }
  const Rate& headline() const { return rate_of(result_.basis); }
  const Rate& other() const { return rate_of(other_basis()); }

  void add_single() {
    const std::string time = format_time(result_.summary.median);
    const std::string bar = paint("  ┊ ", dim_style);
    out_ += fmt::format(" Single result which took {}{}{}: {}{}\n", paint(time, median_style), bar,
                        name(result_.basis), format_rate(headline().median), of_peak());
    out_ += fmt::format("{}{}{}: {}\n", std::string(26 + columns_of(time), ' '), bar,
                        name(other_basis()), format_rate(other().median));
  }

  void add_statistics() {
    const Summary& s = result_.summary;
    const std::string low = format_time(s.min), high = format_time(s.max),
                      median = format_time(s.median);
    const std::string mean = format_time(s.mean), sd = format_time(s.sd);
    const std::size_t left = std::max({columns_of(low), columns_of(median), columns_of(mean)});
    const std::size_t right = std::max(columns_of(high), columns_of(sd));
    const auto cell = [&](const std::string& text, std::size_t width, std::string_view style) {
      return paint(fmt::format("{:>{}}", text, width), style);
    };
    const auto dim = [&](std::string_view text) { return paint(text, dim_style); };
    const Rate& rate = headline();
    const std::string_view basis = name(result_.basis);

    out_ += " Range" + dim(" (") + paint("min", min_style) + dim(" … ") + paint("max", max_style) +
            dim("):  ") + cell(low, left, min_style) + dim(" … ") + cell(high, right, max_style) +
            dim("  ┊ ") + fmt::format("{}: ", basis) + format_rate(rate.max) + dim(" … ") +
            format_rate(rate.min) + '\n';
    out_ += " Time " + dim(" (") + paint("median", median_style) + dim("):     ") +
            cell(median, left, median_style) + std::string(right + 5, ' ') + dim("┊ ") +
            fmt::format("{}: ", basis) + format_rate(rate.median) + of_peak() + '\n';
    out_ += " Time " + dim(" (") + paint("mean", mean_style) + dim(" ± ") + paint("σ", sd_style) +
            dim("):   ") + cell(mean, left, mean_style) + dim(" ± ") + cell(sd, right, sd_style) +
            dim("  ┊ ") + fmt::format("{} (median): ", name(other_basis())) +
            format_rate(other().median) + '\n';

    if (result_.samples_ns.size() < 2) return;  // a file may have been stripped of them
    const int width = options_.axis ? options_.axis_width : histogram_width(s);
    out_ += '\n';
    for (const std::string& line : histogram_lines(
             make_histogram(result_.samples_ns, width, options_.histogram, options_.axis), width,
             options_.color))
      out_ += line + '\n';
  }

  void add_verification() {
    const Verification& v = result_.verification;
    if (v.mismatch) return add_mismatch(*v.mismatch);
    const auto checked = static_cast<std::uint64_t>(v.passes_checked),
               passes = static_cast<std::uint64_t>(v.passes);
    if (result_.verified == true) {
      const bool every =
          std::ranges::find(result_.marks, Mark::verified_every) != result_.marks.end();
      add(fmt::format("verified {} bytes in {} of {}{}", format_count(v.bytes),
                      format_count(checked), counted(passes, "pass", "passes"),
                      every          ? ", around every sample"
                      : checked == 2 ? " (after warm-up, at the end)"
                                     : ""));
    } else if (result_.samples > 0) {
      add(checked == 0 ? "not verified"
                       : fmt::format("not verified to the end: {} of {} checked", checked,
                                     counted(passes, "pass", "passes")));
    }
  }

  void add_mismatch(const Mismatch& m) {
    const std::string noun(device_noun(machine_.backend));
    out_ += ' ' + paint("VERIFICATION FAILED", failure_style) +
            fmt::format(": {}: {}\n", name(m.kind), help_of(m.kind));
    add(fmt::format("  first wrong byte at offset {} (0x{:x}) of the array, in slice {}:",
                    format_count(m.offset), m.offset, m.slice));
    add(fmt::format("  expected 0x{:02x}, got 0x{:02x}; {} wrong in all, written by {} {}",
                    m.expected, m.got, m.count == 1 ? "1 byte" : format_count(m.count) + " bytes",
                    noun, m.device));
    add(fmt::format("  hint: {}", hint(m.kind)));
  }

  static std::string_view hint(MismatchKind kind) {
    switch (kind) {
      case MismatchKind::never_written:
        return "the copy never reached these bytes; look for errors (Xid) in the kernel's log, try "
               "--engine memcpy";
      case MismatchKind::zeroed:
        return "with an IOMMU or ACS active, copies between GPUs can arrive as zeros; look for "
               "IO_PAGE_FAULT in the kernel's log";
      case MismatchKind::stale:
        return "this pass did not reach these bytes, an earlier one did; --verify every finds the "
               "first such pass";
      case MismatchKind::corrupt:
        return "bits changed on the way; look for memory (ECC) and NVLink errors in the kernel's "
               "log";
    }
    return "";
  }

  void add_median() {
    const Summary& s = result_.summary;
    const double off = 100 * std::max(s.median_high - s.median, s.median - s.median_low) / s.median;
    if (result_.samples > 1 && std::isfinite(off))
      add(fmt::format("median: known to ±{:.{}f}% (95%)", off, off < 0.1 ? 2 : off < 10 ? 1 : 0));
    if (result_.modes) add("modes: " + modes_phrase(*result_.modes));
  }

  void add_rounds() {
    if (result_.round_medians.empty()) return;
    const auto [low, high] = std::ranges::minmax(result_.round_medians);
    add(
        fmt::format("rounds: medians {} … {}; devices, costs and causes are those of the round "
                    "whose median is in the middle",
                    format_time(low), format_time(high)));
  }

  void add_costs() {
    if (result_.overlap)
      add(fmt::format("overlap: {:.2f} devices at work at a time{}", *result_.overlap,
                      result_.event_median_ns ? fmt::format(" (with events: median {})",
                                                            format_time(*result_.event_median_ns))
                                              : ""));
    if (result_.what.owner_wait != OwnerWait::none && result_.owner_wait_idle)
      add("owner wait: changes nothing here, the slices share no array");
    if (!result_.settle_ns.empty())
      add(fmt::format("settle: the first pass took {}", format_time(result_.settle_ns.front())));
    if (result_.harness_ns)
      add(fmt::format("harness: the same steps without their bytes take {}",
                      format_time(*result_.harness_ns)));
    if (result_.run_queue_delay_ns)
      add(fmt::format("run queue: threads waited {} for a CPU during the samples",
                      format_time(*result_.run_queue_delay_ns)));
  }

  void add_marks() {
    for (const Mark mark : result_.marks)
      add(fmt::format("mark {}: {}", name(mark), help_of(mark)));
  }

  void add_verdicts() {
    const auto line = [&](std::string_view label, const std::string& phrase, bool met) {
      const std::string text = wrapped(fmt::format(" {}: {}", label, phrase), 3);
      out_ +=
          met ? text
              : ' ' + painted(label, failure_style, options_.color) + text.substr(1 + label.size());
    };
    if (result_.expect) line("expect", expected_phrase(*result_.expect), result_.expect->met);
    if (result_.baseline)
      line("baseline", judgement_phrase(*result_.baseline),
           result_.baseline->verdict != Verdict::slower);
  }

  // Late, where a reader's eye rests: they are what the run was for.
  void add_causes() {
    constexpr std::string_view label = " cause:";
    for (const Cause& cause : result_.causes) {
      const std::string text =
          wrapped(fmt::format("{} {}", label, cause_phrase(cause, result_.summary.median)), 3);
      out_ += ' ' + paint(label.substr(1), cause_style) + text.substr(label.size());
    }
  }

  const Machine& machine_;
  const CaseResult& result_;
  const RenderOptions& options_;
  std::string out_;
};

std::string ending(const Report& report) {
  const bool told = report.kind == ReportKind::comparison ||
                    (report.error && report.error->kind == ErrorKind::slower) ||
                    std::ranges::any_of(report.cases, [](const CaseResult& r) {
                      return r.outcome == OutcomeKind::failed;
                    });
  std::string out;
  if (report.error && !told) out += wrapped("error: " + printable(report.error->message), 1);
  if (!report.complete) {
    const std::string_view signal = report.exit_code == 130   ? " by SIGINT"
                                    : report.exit_code == 143 ? " by SIGTERM"
                                    : report.exit_code == 129 ? " by SIGHUP"
                                                              : "";
    out += fmt::format("interrupted{}: this is what was finished until then\n", signal);
  }
  return out;
}

}  // namespace

std::string render_text(const Report& report, const RenderOptions& options) {
  std::string out;
  switch (report.kind) {
    case ReportKind::topology:
      out = topology_text(report);
      break;
    case ReportKind::plan:
      out = plan_text(report);
      break;
    case ReportKind::comparison:
      out = comparison_text(report.comparison.value_or(Comparison{}), report.machine.backend,
                            options);
      break;
    case ReportKind::fleet:
      out = fleet_text(report.fleet.value_or(Fleet{}), report.machine.backend, options);
      break;
    case ReportKind::trials:
      if (report.cases.empty() && !report.error) out = "no case was measured\n";
      if (has_several_cases(report.cases)) {
        out = sweep_text(report, options);
        break;
      }
      for (const CaseResult& result : report.cases)
        out += (out.empty() ? "" : "\n") + CaseText(report, result, options).render();
      break;
  }
  return out + ending(report);
}

}  // namespace mgpu
