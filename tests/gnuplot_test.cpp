// SPDX-License-Identifier: MIT
#include "report/report.hpp"
#include "sample_report.hpp"
#include "sample_sweep.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace mgpu;

namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder of its own, gone at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("mgpu_gnuplot_" + std::to_string(getpid()));
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
};

bool gnuplot_is_here() {
  return std::system("gnuplot --version > /dev/null 2>&1") == 0;
}

/// What gnuplot draws, and nothing where it complains.
std::string drawn(const std::string& script, const Folder& folder) {
  std::ofstream(folder.path / "script.gp") << script;
  const std::string in = folder.path.string();
  const bool ended =
      std::system(("cd '" + in + "' && gnuplot script.gp > picture 2> said").c_str()) == 0;
  UNSCOPED_INFO(contents(folder.path / "said"));
  return ended && contents(folder.path / "said").empty() ? contents(folder.path / "picture") : "";
}

}  // namespace

TEST_CASE("several sizes are drawn as rate over size, a line a series", "[gnuplot]") {
  CHECK(render(Format::gp, sample_sweep()) == R"(# Drawn by gnuplot 5 or later.
set encoding utf8
set termoption noenhanced
set tmargin 4
set label 'mgpu: 2 x NVIDIA H200, 2 GPUs, device memory' at screen 0.5, screen 0.96 center
set grid
# The fifth colour is a yellow that white paper hides.
set linetype 5 lc rgb '#999933'
set xlabel offset 0,0.4
set logscale x 2
set logscale y 10
set xlabel 'size of the array'
set ylabel 'moved: read + written (GB/s)'
set offsets graph 0.03, graph 0.03, 0, 0
set bmargin 5
set key at screen 0.5, screen 0.02 center bottom vertical maxrows 1
set xtics ('1 MiB' 1048576, '1 GiB' 1073741824)
$data0 << EOD
1048576 144.631 110.902 209.715
1073741824 5924.09 4542.54 8589.93
EOD
$data1 << EOD
1048576 36.1578 27.7254 52.4288
EOD
plot $data0 using 1:2 with linespoints lt 1 dt 1 pt 1 lw 2 title 'kernel', \
     $data0 using 1:2:3:4 with yerrorbars lt 1 pt 0 notitle, \
     $data1 using 1:2 with linespoints lt 2 dt 1 pt 2 lw 2 title 'memcpy', \
     $data1 using 1:2:3:4 with yerrorbars lt 2 pt 0 notitle, \
     9600 with lines lc 'gray40' dt 2 title 'memory peak, 2 GPUs'
)");
}

TEST_CASE("only a picture names its terminal", "[gnuplot]") {
  const Report report = GENERATE(sample_sweep(), sample_seed(), sample_report());
  CHECK(has(render_gnuplot(report, Format::svg), "set terminal svg size 900,"));
  CHECK(has(render_gnuplot(report, Format::png), "set terminal pngcairo size 900,"));
  CHECK(has(render_gnuplot(report, Format::svg), " font 'sans,12' background 'white'\n"));
  CHECK_FALSE(has(render_gnuplot(report, Format::gp), "terminal"));
  CHECK_FALSE(has(render_gnuplot(report, Format::gp), "pause"));
}

TEST_CASE("cases of one size are drawn as a row each", "[gnuplot]") {
  const std::string script = render_gnuplot(sample_seed(), Format::gp);
  CHECK(has(script, "'gpus 0,1, managed, split 2, prefetch array x 2, owner wait host' 16, "));
  CHECK(has(script, "\n16 13.7931 10.5764 20\n"));
  CHECK(has(script, "title 'memory peak, 1 GPU', "));
  CHECK(has(script, "title 'memory peak, 2 GPUs'\n"));
}

TEST_CASE("one case is drawn as the histogram of its text", "[gnuplot]") {
  const std::string script = render_gnuplot(sample_report(), Format::gp);
  // Its 61 bins end at 3 ms: (3 ms - 0.1 ms) / 61 / 2 is 23.77 μs.
  CHECK(has(script, "$data << EOD\n123.770492 96\n"));
  CHECK(has(script, "$slowest << EOD\n"));
  CHECK(has(script, "set ylabel 'samples (logarithmic)'\nset logscale y 10\n"));
  CHECK(has(script, "title 'median 100 μs'"));
  Report even = sample_report();
  even.cases[0].samples_ns.clear();
  for (int i = 0; i < 200; ++i) even.cases[0].samples_ns.push_back(100'000 + i);
  CHECK_FALSE(has(render_gnuplot(even, Format::gp), "logscale"));
}

TEST_CASE("a report without times cannot be drawn", "[gnuplot]") {
  Report report = sample_sweep();
  SECTION("nothing measured") {
    report.cases.erase(report.cases.begin(), report.cases.begin() + 3);
  }
  SECTION("no cases") {
    report.cases.clear();
  }
  SECTION("a topology") {
    report = sample_topology();
  }
  SECTION("one sample") {
    report = sample_report();
    report.cases[0].samples_ns.resize(1);
  }
  CHECK_THROWS_AS(render_gnuplot(report, Format::svg), Error);
}

TEST_CASE("gnuplot draws every chart without a complaint", "[gnuplot]") {
  if (!gnuplot_is_here()) SKIP("no gnuplot");
  const Folder folder;
  Report report = GENERATE(sample_sweep(), sample_seed(), sample_report());
  SECTION("as recorded") {}
  SECTION("without peaks") {
    for (Device& device : report.machine.devices) device.memory_peak.reset();
  }
  SECTION("with samples all the same") {
    for (CaseResult& result : report.cases)
      for (double& ns : result.samples_ns) ns = 5;
  }
  const std::string picture = drawn(render_gnuplot(report, Format::svg), folder);
  CHECK(has(picture, "<svg"));
  CHECK(has(picture, "</svg>"));
}

TEST_CASE("a name from a file cannot make gnuplot run a command", "[gnuplot]") {
  const std::string name =
      GENERATE("`touch ran`", "it's `touch ran`", "\"`touch ran`\"", "'.system('touch ran').'",
               "a\n!touch ran\n", "\\' `touch ran`");
  Report report = GENERATE(sample_sweep(), sample_seed(), sample_report());
  for (Device& device : report.machine.devices) device.name = name;
  const std::string script = render_gnuplot(report, Format::svg);
  // Every quote of the name is doubled, and a line of a name is no line of the script.
  CHECK_FALSE(has(script, "\n!"));
  if (!gnuplot_is_here()) SKIP("no gnuplot");
  const Folder folder;
  CHECK(has(drawn(script, folder), "</svg>"));
  CHECK_FALSE(fs::exists(folder.path / "ran"));
}
