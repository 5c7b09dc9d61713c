// SPDX-License-Identifier: MIT
// Who may include whom. The rules are this file's tables; docs/architecture.md says why.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path source_root = fs::path(MGPU_SOURCE_DIR) / "src";

/// One #include line: the file it is in, relative to src/, and the name with its quotes or
/// brackets.
struct Include {
  std::string file;
  std::string name;
};

std::vector<std::string> source_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(source_root)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cpp" || extension == ".hpp" || extension == ".cu") {
      files.push_back(entry.path().lexically_relative(source_root).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Include> includes_of(const std::string& file) {
  std::vector<Include> includes;
  std::ifstream in(source_root / file);
  for (std::string line; std::getline(in, line);) {
    const auto begin = line.find_first_of("\"<");
    if (!line.starts_with("#include") || begin == std::string::npos) continue;
    const auto end = line.find_first_of("\">", begin + 1);
    if (end != std::string::npos) includes.push_back({file, line.substr(begin, end - begin + 1)});
  }
  return includes;
}

bool is_ours(std::string_view name) {
  return name.starts_with('"');
}

std::string unquoted(std::string_view name) {
  return std::string(name.substr(1, name.size() - 2));
}

/// The folder of a file, or what the first word of its name belongs to; empty for an unknown file.
std::string room(const std::string& file) {
  const auto slash = file.find('/');
  if (slash != std::string::npos) return file.substr(0, slash);
  static const std::map<std::string, std::string> top_level = {
      {"main", "main"},        {"app", "app"},         {"output", "app"},
      {"signals", "app"},      {"cli", "cli"},         {"measure", "measure"},
      {"crew", "measure"},     {"trial", "measure"},   {"phases", "measure"},
      {"watchdog", "measure"}, {"peers", "measure"},   {"timeline", "measure"},
      {"topology", "measure"}, {"buffers", "measure"}, {"memory", "measure"},
      {"run", "app"},          {"gate", "app"},        {"saved", "app"},
      {"show", "app"},         {"pictures", "app"},    {"ranks", "app"},
      {"rank", "app"},         {"outputs", "app"},     {"file", "app"},
      {"team", "team"},        {"version", "version"}};
  const auto found = top_level.find(file.substr(0, file.find_first_of("_.")));
  return found == top_level.end() ? "" : found->second;
}

/// What each room may include beside itself. main passes the builtin backends to the app.
const std::map<std::string, std::set<std::string>> may_include = {
    {"model", {}},
    {"backend", {"model", "version"}},
    {"report", {"model", "version"}},
    {"cli", {"model", "version"}},
    {"measure", {"model", "backend", "version"}},
    {"team", {"model"}},
    {"app", {"model", "backend", "report", "cli", "measure", "team", "version"}},
    {"main", {"model", "backend", "app", "version"}},
};

/// A library that only files whose name starts with one of `owners` may include.
struct Library {
  std::string_view name;
  std::vector<std::string_view> headers;
  std::vector<std::string_view> owners;
  bool in_headers = true;
};

const std::vector<Library> libraries = {
    {"CLI11", {"<CLI/"}, {"cli_options.cpp"}},
    {"CUDA", {"<cuda", "<nvml", "<cupti", "<cooperative_groups"}, {"backend/cuda"}},
    {"hwloc", {"<hwloc"}, {"backend/cpus."}},
    {"MPI", {"<mpi"}, {"team.cpp"}},
    {"nlohmann-json", {"<nlohmann/"}, {"report/json"}, false},
};

/// What a model that does no I/O, reads no clock and starts no thread has no use for.
const std::vector<std::string_view> impure = {"<chrono>",     "<fstream>", "<iostream>",
                                              "<filesystem>", "<thread>",  "<mutex>",
                                              "<unistd.h>",   "<sys/",     "<dlfcn.h>"};

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// Why this include is not allowed, if it is not.
std::optional<std::string> violation(const Include& include) {
  const auto& [file, name] = include;
  const std::string says = file + " includes " + name + ": ";
  const std::string from = room(file);
  if (!may_include.contains(from)) return says + "no rule names this file's room";

  if (is_ours(name)) {
    const std::string to = room(unquoted(name));
    if (to == from || may_include.at(from).contains(to)) return std::nullopt;
    return says + from + " may not see " + (to.empty() ? "it" : to);
  }
  for (const Library& library : libraries) {
    if (!starts_with_any(name, library.headers)) continue;
    const bool right_kind = library.in_headers || file.ends_with(".cpp");
    if (!right_kind || !starts_with_any(file, library.owners)) {
      return says + std::string(library.name) + " belongs to other files";
    }
  }
  if (from == "model" && starts_with_any(name, impure)) return says + "the model is pure";
  return std::nullopt;
}

/// Headers of plain C++17 that device code shares.
const std::vector<std::string_view> nvcc_takes = {"\"backend/cuda", "\"model/pattern.hpp\""};

/// Everything that a file includes, directly or through our own headers.
std::set<std::string> reached_from(const std::string& file) {
  std::set<std::string> names;
  std::vector<std::string> open = {file};
  while (!open.empty()) {
    const std::string next = open.back();
    open.pop_back();
    for (const Include& include : includes_of(next)) {
      if (names.insert(include.name).second && is_ours(include.name)) {
        open.push_back(unquoted(include.name));
      }
    }
  }
  return names;
}

}  // namespace

TEST_CASE("every include goes the way of the layers and each library keeps to its files",
          "[layers]") {
  std::size_t seen = 0;
  for (const std::string& file : source_files()) {
    for (const Include& include : includes_of(file)) {
      ++seen;
      const auto found = violation(include);
      INFO(found.value_or(""));
      CHECK_FALSE(found);
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("our headers are included by their path below src", "[layers]") {
  for (const std::string& file : source_files()) {
    for (const Include& include : includes_of(file)) {
      if (!is_ours(include.name) || include.name == "\"version.hpp\"") continue;
      INFO(file << " includes " << include.name);
      CHECK(fs::exists(source_root / unquoted(include.name)));
    }
  }
}

TEST_CASE("a CUDA source reaches neither fmt nor JSON, and of ours only what nvcc takes",
          "[layers]") {
  for (const std::string& file : source_files()) {
    if (!file.ends_with(".cu")) continue;
    for (const std::string& name : reached_from(file)) {
      INFO(file << " reaches " << name);
      CHECK_FALSE(name.starts_with("<fmt/"));
      CHECK_FALSE(name.starts_with("<nlohmann/"));
      CHECK((!is_ours(name) || starts_with_any(name, nvcc_takes)));
    }
  }
}

TEST_CASE("the rules refuse an include that crosses them", "[layers]") {
  const auto refused = {
      Include{"model/plan.cpp", "\"backend/backend.hpp\""},
      Include{"backend/host.cpp", "\"report/report.hpp\""},
      Include{"backend/host.cpp", "\"measure.hpp\""},
      Include{"report/text.cpp", "\"backend/backend.hpp\""},
      Include{"report/text.cpp", "\"cli.hpp\""},
      Include{"cli.cpp", "\"report/report.hpp\""},
      Include{"cli.cpp", "\"app.hpp\""},
      Include{"measure.cpp", "\"report/report.hpp\""},
      Include{"main.cpp", "\"cli.hpp\""},
      Include{"app.cpp", "<CLI/CLI.hpp>"},
      Include{"cli.cpp", "<CLI/CLI.hpp>"},
      Include{"backend/host.cpp", "<cuda_runtime_api.h>"},
      Include{"backend/nvml.cpp", "<nvml.h>"},
      Include{"backend/host.cpp", "<hwloc.h>"},
      Include{"report/json.hpp", "<nlohmann/json.hpp>"},
      Include{"report/csv.cpp", "<nlohmann/json.hpp>"},
      Include{"model/result.cpp", "<chrono>"},
      Include{"utils.cpp", "<string>"},
  };
  for (const Include& include : refused) {
    INFO(include.file << " includes " << include.name);
    CHECK(violation(include));
  }
}
