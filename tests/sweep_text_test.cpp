// SPDX-License-Identifier: MIT
#include "model/sweep.hpp"
#include "report/phrases.hpp"
#include "report/report.hpp"
#include "sample_report.hpp"
#include "sample_sweep.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <sstream>
#include <string>

using namespace mgpu;

namespace {

std::string text_of(const Report& report, int width = 0) {
  return render(Format::text, report, {.width = width});
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string without_colors(const std::string& text) {
  std::string plain;
  bool inside = false;
  for (const char c : text) {
    if (c == '\x1b') inside = true;
    if (!inside) plain += c;
    if (c == 'm') inside = false;
  }
  return plain;
}

}  // namespace

TEST_CASE("several cases are one table of what varies and what was found", "[sweep]") {
  CHECK(text_of(sample_sweep()) ==
        R"(mgpu sweep: 5 cases (1 skipped, 1 failed), device memory

  #  gpus   size  engine         min      median        mean         max      moved     copied  min to 99% point  marks
 1*   0,1  1 MiB  kernel   10.000 μs   14.500 μs   14.500 μs   19.000 μs   145 GB/s  72.3 GB/s  ██▁█▁█▁██▁█▁█▁██  L2, bimodal
 2    0,1  1 GiB  kernel  250.000 μs  362.500 μs  362.500 μs  475.000 μs  5.92 TB/s  2.96 TB/s  ██▁█▁█▁██▁█▁█▁██
 3    0,1  1 MiB  memcpy   40.000 μs   58.000 μs   58.000 μs   76.000 μs  36.2 GB/s  18.1 GB/s  ██▁█▁█▁██▁█▁█▁██  L2
 4    0,1  1 GiB  memcpy  FAIL: wrong data in slice 1: 4096 bytes, first at offset 123456 (zeroed)
 5      1  1 MiB  kernel  skipped: GPU 1 is busy

 best at 1 MiB: * 14.5 μs; the slowest takes 4 times as long
 verified: all that were measured
 mark L2 (rows 1, 3): )" +
            wrapped("                      " +
                        std::string(vocabulary<Mark>[static_cast<std::size_t>(Mark::l2)].help),
                    3)
                .substr(22) +
            R"( mark bimodal (row 1): the samples have two modes
 rates are of the median: copied is payload, moved is read + written; 1 GB is
   1,000,000,000 bytes
 cause narrow-access (rows 2, 3): the kernel moves few bytes per access; costs
   20 μs to 100 μs (25% to 50% of the median): --access 16 removes it
 cause harness (row 1): the copy is small
)");
}

TEST_CASE("a narrow terminal loses columns, and is told which, and loses no reason", "[sweep]") {
  const std::string text = text_of(sample_sweep(), 80);
  CHECK(has(text, R"(
  #  gpus   size  engine         min      median      moved  marks
 1*   0,1  1 MiB  kernel   10.000 μs   14.500 μs   145 GB/s  L2, bimodal
 2    0,1  1 GiB  kernel  250.000 μs  362.500 μs  5.92 TB/s
 3    0,1  1 MiB  memcpy   40.000 μs   58.000 μs  36.2 GB/s  L2
 4    0,1  1 GiB  memcpy  FAIL: wrong data in slice 1: 4096 bytes, first at off…
 5      1  1 MiB  kernel  skipped: GPU 1 is busy
 row 4: FAIL: wrong data in slice 1: 4096 bytes, first at offset 123456 (zeroed)
 left out at 80 columns: mean, max, copied, min to 99% point
)"));
  CHECK_FALSE(has(text_of(sample_sweep(), 200), "left out"));
}

TEST_CASE("no line of a sweep is wider than the terminal", "[sweep]") {
  const int width = GENERATE(range(40, 200, 7));
  const bool color = GENERATE(false, true);
  const Report report = GENERATE(sample_sweep(), sample_seed());
  std::istringstream lines(
      without_colors(render(Format::text, report, {.color = color, .width = width})));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(columns_of(line) <= static_cast<std::size_t>(width));
  }
}

TEST_CASE("colours are added to a sweep and nothing else is changed", "[sweep]") {
  const std::string colored = render(Format::text, sample_sweep(), {.color = true});
  CHECK(has(colored, "\x1b[1;32m1*\x1b[0m"));
  CHECK(has(colored, "\x1b[1;31mFAIL: wrong data"));
  CHECK(has(colored, "\n \x1b[33mcause\x1b[0m narrow-access"));
  CHECK(without_colors(colored) == text_of(sample_sweep()));
}

TEST_CASE("what all cases share stands in the heading, what follows from others nowhere",
          "[sweep]") {
  Report report = sample_sweep();
  for (CaseResult& result : report.cases) {
    result.what.threads = Threads::task;
    result.what.size = 1000;
  }
  const std::string text = text_of(report);
  CHECK(has(text, ", 1 kB device, threads task\n"));
  CHECK(has(text, "  #  gpus  engine "));
  report.cases[0].what.split = 4;
  CHECK(has(text_of(report), "  #  gpus  split  engine "));
}

TEST_CASE("efficiencies are columns where any case has one", "[sweep]") {
  Report report = sample_sweep();
  report.cases[1].weak_efficiency = 0.874;
  const std::string text = text_of(report);
  CHECK(has(text, "  weak  marks\n"));
  CHECK(has(text, "   87%\n"));
  CHECK_FALSE(has(text, "  strong"));
  CHECK(has(text, " weak: one device's median"));
}

TEST_CASE("the rounds of one case are no sweep", "[sweep]") {
  Report report = sample_report();
  report.cases.push_back(report.cases[0]);
  CHECK(text_of(report).starts_with("mgpu copy: 100 samples"));
  report.cases[1].what.gpus = {1};
  CHECK(text_of(report).starts_with("mgpu sweep: 2 cases, 4 GB managed"));
}

TEST_CASE("a sweep that measured nothing is its reasons", "[sweep]") {
  Report report = sample_sweep();
  report.cases.erase(report.cases.begin(), report.cases.begin() + 3);
  const std::string text = text_of(report);
  CHECK(has(text, "  #  gpus   size  engine\n"));
  CHECK(has(text, " 2      1  1 MiB  kernel  skipped: GPU 1 is busy\n"));
  CHECK_FALSE(has(text, "best"));
  CHECK_FALSE(has(text, "verified"));
}

TEST_CASE("what was not verified is named", "[sweep]") {
  Report report = sample_sweep();
  report.cases[1].verified.reset();
  CHECK(has(text_of(report), " verified: all that were measured but row 2\n"));
  for (CaseResult& result : report.cases) result.verified.reset();
  CHECK(has(text_of(report), " not verified\n"));
}

TEST_CASE("cases as fast as the best share its star and are named", "[sweep]") {
  Report report = sample_sweep();
  report.cases[2] = report.cases[0];
  report.cases[2].what.engine = Engine::memcpy;
  const std::string text = text_of(report);
  CHECK(has(text, "\n 1* "));
  CHECK(has(text, "\n 3* "));
  CHECK(has(text, " best at 1 MiB: rows 1, 3 (*) 14.5 μs; the others take as long\n"));
}

TEST_CASE("the preset issue-2615 looks like the issue's table", "[sweep]") {
  Report report = sample_seed();
  report.cases[15].causes = {
      {CauseKind::array_prefetch, "whole arrays are prefetched", 398e6, 0.995, "--prefetch none"}};
  CHECK(text_of(report) ==
        R"(mgpu sweep: CUDA.jl issue 2615, 18 cases, 4 GB, runtime cudajl-5.4, home GPU 0,
 align 4 B, access 4, owner lock record, threads task; min / median in ms

 scenario                 a: as shipped  b: no prefetch  c: no prefetch, no wait
 1 single kernel          3.000 / 4.350   3.000 / 4.350            3.000 / 4.350
 2 multiple kernels       3.100 / 4.495   3.100 / 4.495            3.100 / 4.495
 3 wrong device           12.00 / 17.40   12.00 / 17.40            12.00 / 17.40
 4 unified                11.40 / 16.53   3.000 / 4.350            3.000 / 4.350
 5 unified, wrong device  11.20 / 16.24   3.000 / 4.350            3.000 / 4.350
 6 multi-GPU              400.0 / 580.0   2.000 / 2.900            1.000 / 1.450

 GPU 0: 00000000:17:00.0  GPU-9a1e0c5d  NVIDIA H200
 best at 4 GB: 6c 1.45 ms; the slowest takes 400 times as long
 verified: all that were measured
 rates are of the median: copied is payload, moved is read + written; 1 GB is
   1,000,000,000 bytes
 cause array-prefetch (6a): whole arrays are prefetched; costs 398 ms of 580 ms
   (99.5%): --prefetch none removes it
)");
  CHECK(has(render(Format::markdown, report),
            "| 6 multi-GPU | 400.0 / 580.0 | 2.000 / 2.900 | 1.000 / 1.450 |\n"));
}

TEST_CASE("the issue's table is told by its cases and the command, not by their order", "[sweep]") {
  Report report = sample_seed();
  const std::string text = text_of(report);
  std::reverse(report.cases.begin(), report.cases.end());
  report.command = {"mgpu", "sweep", "--preset=issue-2615"};
  CHECK(text_of(report) == text);
  SECTION("another command") {
    report.command = {"mgpu", "sweep", "--preset", "scaling"};
  }
  SECTION("two cases for one cell") {
    report.cases[0].what.size = 1000;
    report.cases.push_back(sample_seed().cases[17]);
  }
  SECTION("a case that is no scenario") {
    report.cases[0].what.runtime = Runtime::plain;
  }
  CHECK(has(text_of(report), "\n   #  "));
}

TEST_CASE("cells of the issue's table without times have their reasons below", "[sweep]") {
  Report report = sample_seed();
  for (const std::size_t i : {6u, 7u, 8u}) {
    report.cases[i].what.gpus.clear();
    report.cases[i].outcome = OutcomeKind::skipped;
    report.cases[i].samples = 0;
    report.cases[i].reason = "no second GPU";
  }
  report.cases[9].outcome = OutcomeKind::failed;
  report.cases[9].reason = "wrong data";
  const std::string text = text_of(report);
  CHECK(has(text, " 3 wrong device                       -               -"));
  CHECK(has(text, " 4 unified                         FAIL   3.000 / 4.350"));
  CHECK(has(text, "\n 3a-3c: skipped: no second GPU\n 4a: FAIL: wrong data\n"));
}

TEST_CASE("markdown shows a sweep as one table, reasons in its last column", "[sweep][markdown]") {
  Report report = sample_sweep();
  report.cases[4].reason = "a | b";
  const std::string text = render(Format::markdown, report);
  CHECK(has(text, "**mgpu sweep** on host node1, 2 x NVIDIA H200"));
  CHECK(
      has(text, "\n5 cases (1 skipped, 1 failed), device memory\n\n| # | gpus | size | engine |"));
  CHECK(has(text, "\n| 1\\* | 0,1 | 1 MiB | kernel | 10.000 μs | 14.500 μs |"));
  CHECK(has(text, " | skipped: a \\| b |\n"));
  CHECK(has(text, "\n- best at 1 MiB: \\* 14.5 μs; the slowest takes 4 times as long\n"));
  CHECK(has(text, "\n- cause narrow-access (rows 2, 3): the kernel"));
}
