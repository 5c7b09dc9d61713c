// SPDX-License-Identifier: MIT
#include "report/comparison.hpp"
#include "sample_comparison.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sstream>

using namespace mgpu;
using Catch::Matchers::ContainsSubstring;

namespace {

ComparisonRow row(Bytes size, Verdict verdict, double ratio, std::string reason) {
  ComparisonRow one;
  one.what.gpus = {0};
  one.what.size = size;
  one.base = {2.008e6, 8, {}, {}};
  one.current = {2.008e6 * ratio, 8, {}, {}};
  one.ratio = ratio;
  one.ratio_low = ratio * 0.985;
  one.ratio_high = ratio * 1.015;
  one.verdict = verdict;
  one.reason = std::move(reason);
  return one;
}

Comparison sample() {
  Comparison comparison;
  comparison.rows = {row(1'000'000, Verdict::slower, 1.111, "8+8 rounds in turns"),
                     row(2'000'000, Verdict::same, 1.001, "8+8 rounds in turns"),
                     row(4'000'000, Verdict::unclear, 1.04, "wide: rounds spread 6%")};
  comparison.rows[2].ratio_low = comparison.rows[2].ratio_high = std::nullopt;
  comparison.rows[1].current.modes = Modes{0.61, 0.39, 1.9e6, 2.2e6};
  UnmatchedCase lone;
  lone.side = Side::current;
  lone.what = comparison.rows[0].what;
  lone.what.size = 8'000'000;
  lone.reason = "not in base";
  comparison.unmatched = {lone};
  comparison.differences = {{"driver", "580.1", "590.2"}};
  return comparison;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns_of(line));
  return widest;
}

}  // namespace

TEST_CASE("a comparison as text has a row a case and tells the rest below", "[compare]") {
  CHECK(comparison_text(sample(), BackendKind::cuda, {.width = 120}) ==
        R"(mgpu compare: 3 cases (1 slower, 1 same, 1 unclear), median, tolerance 5%,
 1 GPU, device memory

 #  size      base       new  ratio  99% interval    verdict  reason
 1  1 MB  2.008 ms  2.231 ms  1.111  1.094 .. 1.128  slower   8+8 rounds in turns
 2  2 MB  2.008 ms  2.010 ms  1.001  0.986 .. 1.016  same     8+8 rounds in turns
 3  4 MB  2.008 ms  2.088 ms  1.040                  unclear  wide: rounds spread 6%

 modes of row 2: base one; new 61% at 1.9 ms, 39% at 2.2 ms
 only new: 1 GPU, 8 MB device: not in base
 driver: 580.1 in base, 590.2 in new
)");
}

TEST_CASE("at 80 columns the reasons follow the table of a comparison", "[compare]") {
  const std::string text = comparison_text(sample(), BackendKind::cuda);
  CHECK(widest_line(text) <= 80);
  CHECK_THAT(text, ContainsSubstring("rows 1, 2: 8+8 rounds in turns"));
  CHECK_THAT(text, ContainsSubstring("row 3: wide: rounds spread 6%"));
  CHECK(widest_line(comparison_text(sample(), BackendKind::cuda, {.width = 50})) <= 50);
}

TEST_CASE("colour is on the verdict alone and only where it is wanted", "[compare]") {
  CHECK_THAT(comparison_text(sample(), BackendKind::cuda, {.color = true}),
             ContainsSubstring("\x1b[1;31mslower\x1b[0m"));
  CHECK_THAT(comparison_text(sample(), BackendKind::cuda), !ContainsSubstring("\x1b"));
}

TEST_CASE("nothing comparable is said, with what each side has", "[compare]") {
  Comparison comparison = sample();
  comparison.rows.clear();
  const std::string text = comparison_text(comparison, BackendKind::cuda);
  CHECK_THAT(text, ContainsSubstring("mgpu compare: no case is measured on both sides"));
  CHECK_THAT(text, ContainsSubstring("only new: "));
}

TEST_CASE("a comparison as Markdown is one table with nothing left out and no markup from files",
          "[compare]") {
  Comparison comparison = sample();
  comparison.differences[0].current = "a|b<c";
  const std::string text = comparison_markdown(comparison, BackendKind::cuda);
  CHECK_THAT(text, ContainsSubstring(
                       "| # | size | base | new | ratio | 99% interval | verdict | reason |\n"));
  CHECK_THAT(text, ContainsSubstring("| slower | 8+8 rounds in turns |\n"));
  CHECK_THAT(text, ContainsSubstring("- driver: 580.1 in base, a\\|b\\<c in new\n"));
}

TEST_CASE("a JUnit file has a test a case: slower fails, unclear is skipped", "[compare]") {
  Comparison comparison = sample();
  comparison.rows[0].reason = "a \"<&>\" b";
  const std::string xml = render_junit("compare", junit_cases(comparison, BackendKind::cuda));
  CHECK_THAT(xml, ContainsSubstring("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\""));
  CHECK_THAT(
      xml, ContainsSubstring("<failure message=\"slower: median 2.008 ms in base, 2.231 ms in new, "
                             "ratio 1.111 (tolerance 5%), a &quot;&lt;&amp;&gt;&quot; b\"/>"));
  CHECK_THAT(xml, ContainsSubstring("<skipped message=\"unclear: "));
  CHECK_THAT(xml, ContainsSubstring("<skipped message=\"only new: not in base\"/>"));
}
