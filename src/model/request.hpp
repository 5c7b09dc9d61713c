// SPDX-License-Identifier: MIT
// What the user asked for: text turned into types, with no knowledge of the machine.
#pragma once

#include "model/gpus.hpp"
#include "model/share.hpp"
#include "model/units.hpp"
#include "model/wanted.hpp"
#include "model/words.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mgpu {

enum class Command { copy, sweep, topo, show, compare, merge };
template <>
inline constexpr auto vocabulary<Command> = std::to_array<Word<Command>>({
    {Command::copy, "copy", "measure one case: how fast the devices copy, alone and together"},
    {Command::sweep, "sweep", "measure every combination of many cases, as one table"},
    {Command::topo, "topo", "show what the machine is, and what its links do"},
    {Command::show, "show", "render saved results again"},
    {Command::compare, "compare", "say which cases of two saved results are faster or slower"},
    {Command::merge, "merge", "put the results of many nodes together and name the slow GPUs"},
});

/// One combination of what shapes a case; nullopt where the default depends on other choices or on
/// the machine.
struct CaseSpec {
  GpuList gpus;  ///< empty: not given
  std::optional<Size> size;
  MemoryKind memory = MemoryKind::device;
  std::optional<PlaceSpec> home, from, to;
  bool bidirectional = false;
  std::optional<int> split;
  std::optional<Bytes> align;
  Engine engine = Engine::kernel;
  int access = 16;
  int batch = 1;
  std::optional<Prefetch> prefetch;
  bool cold = false;
  std::optional<OwnerWait> owner_wait;
  Advice advise = Advice::none;
  std::optional<Runtime> runtime;
  std::optional<Threads> threads;
  Peer peer = Peer::automatic;
  bool operator==(const CaseSpec&) const = default;
};

/// What `topo --measure` copies.
enum class Measure { pairs, all };
template <>
inline constexpr auto vocabulary<Measure> = std::to_array<Word<Measure>>({
    {Measure::pairs, "pairs", "each device alone, each pair, and each GPU with the host"},
    {Measure::all, "all", "also one device with all others at once"},
});

struct MatrixSpec {
  GpuList gpus;                  ///< empty: all
  std::optional<Bytes> size;     ///< of a copy; by default 64 MiB
  std::optional<Engine> engine;  ///< the only one, else each
};

/// The values of one option of a sweep: each sets its field of a case.
using Axis = std::vector<std::function<void(CaseSpec&)>>;

/// Known tables of cases; their rows are in model/sweep.
enum class Preset { issue_2615, scaling };
template <>
inline constexpr auto vocabulary<Preset> = std::to_array<Word<Preset>>({
    {Preset::issue_2615, "issue-2615",
     "the six scenarios of CUDA.jl issue 2615, by three policies"},
    {Preset::scaling, "scaling", "one to all devices, weak and strong"},
});

/// How a trial is taken; none of it is part of a case's identity.
struct Sampling {
  std::int64_t samples = 10000;
  double seconds = 5;
  std::optional<double> until;  ///< per cent: stop once the median is known as well as that
  int warmup = 2;
  double timeout = 120;  ///< seconds one step may take; 0: for ever
  Verify verify = Verify::ends;
  bool oversubscribe = false;
  bool counters = false;
  bool timeline = false;  ///< keep what a timeline needs
};

struct OutputSpec {
  Format format = Format::text;
  std::string path;
};

struct Request {
  Command command = Command::copy;
  BackendKind backend = BackendKind::cuda;
  std::optional<int> host_devices;
  Share share;                   ///< where several processes share the devices
  std::vector<CaseSpec> cases;   ///< of copy: one
  std::optional<Preset> preset;  ///< of sweep, as are the axes: outermost first
  std::vector<Axis> axes;
  std::string resume;              ///< a .jsonl file whose cases are kept, empty for none
  std::optional<Measure> measure;  ///< of topo, as is the matrix
  MatrixSpec matrix;
  std::string machine_file;  ///< a recorded machine to plan for; empty: this one
  Sampling sampling;
  Affinity affinity = Affinity::near;
  bool dry_run = false;
  std::string timeline;  ///< path of a Chrome trace, "-" for bars on stdout, empty for none
  HistogramScale histogram = HistogramScale::automatic;
  std::vector<std::string> files;  ///< inputs of show and merge; base and new of compare
  std::vector<Expectation> expect;
  std::string baseline;  ///< a saved result to compare with, empty for none
  CompareOptions compare;
  double outlier = 5;        ///< per cent that a GPU of a fleet may differ by
  std::string exclude_file;  ///< of merge: for the list of nodes to leave out, empty for none
  Format format = Format::text;
  std::vector<OutputSpec> outputs;
  bool append = false, force = false;
  Color color = Color::automatic;
  bool quiet = false;
  std::vector<std::string> argv;  ///< as given, for the report
};

}  // namespace mgpu
