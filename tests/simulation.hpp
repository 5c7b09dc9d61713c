// SPDX-License-Identifier: MIT
// Command lines run in this process on simulated devices, so that their bytes are exact.
#pragma once

#include "app.hpp"
#include "environment.hpp"
#include "faulty.hpp"
#include "sim.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace mgpu {

struct Outcome {
  int code = 0;
  std::string out, err;
  int left_with = -1;  // the code of a process that was left at once
};

// One command line on simulated devices; "cuda" and "host" are both simulated, so that results are
// exact.
struct Simulation {
  SimOptions options;
  std::vector<Fault> faults;
  std::function<void(Machine&)> edit;
  int out_errno = 0;
  bool terminal = false;
  std::string input;
  FaultyBackend* backend = nullptr;
  Join join;

  Outcome operator()(std::vector<std::string> args) {
    Outcome outcome;
    Console console;
    console.out = [&](std::string_view bytes) {
      outcome.out += bytes;
      return out_errno;
    };
    console.err = [&](std::string_view bytes) { outcome.err += bytes; };
    console.in = [&] { return input; };
    console.leave = [&](int code) {
      outcome.left_with = code;
      backend->release();
    };
    console.out_is_terminal = console.err_is_terminal = terminal;
    const auto make = [this](std::optional<int> devices) {
      SimOptions made = options;
      if (devices) made.gpus = *devices;
      auto faulty =
          std::make_unique<FaultyBackend>(std::make_unique<SimBackend>(made), faults, edit);
      backend = faulty.get();
      return faulty;
    };
    const BackendRow rows[] = {{BackendKind::cuda, true, make}, {BackendKind::host, true, make}};
    outcome.code = run_app(args, console, rows, join);
    return outcome;
  }
};

// A fresh directory, removed at the end.
struct TemporaryDirectory {
  std::filesystem::path path;
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mgpu-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()));
    path = pattern;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace mgpu
