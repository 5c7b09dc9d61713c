// SPDX-License-Identifier: MIT
#include "backend/host_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

namespace mgpu {
namespace {

constexpr std::string_view blanks = " \t\n";

/// The content of a file of /proc or /sys; empty where it cannot be read.
std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Takes what is in front of the next one of `separators` off `text`, and that separator with it.
std::string_view take(std::string_view& text, std::string_view separators) {
  const auto end = text.find_first_of(separators);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty())
    if (const auto word = take(line, blanks); !word.empty()) words.push_back(word);
  return words;
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// The value of the first line whose word in front of it is `key`.
template <class T>
std::optional<T> field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto words = words_of(take(text, "\n"));
    const auto found = std::ranges::find(words, key);
    if (found != words.end() && found + 1 != words.end()) return number<T>(found[1]);
  }
  return std::nullopt;
}

Bytes kibibytes(std::string_view text, std::string_view key) {
  return field<Bytes>(text, key).value_or(0) * 1024;
}

std::optional<int> int_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? number<int>(value) : std::nullopt;
}

std::map<std::string, std::string> variables(auto wanted) {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view value = *entry;
    const std::string_view name = take(value, "=");
    if (wanted(name)) found.emplace(name, value);
  }
  return found;
}

bool is_slurm_fact(std::string_view name) {
  constexpr std::array<std::string_view, 10> facts = {
      "SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION",
      "SLURM_LOCALID",      "SLURM_NNODES", "SLURM_NODEID",       "SLURM_NTASKS",
      "SLURM_PROCID",       "SLURM_STEP_ID"};
  return std::ranges::find(facts, name) != facts.end();
}

/// The device's directory name in sysfs, whose domain has four digits where CUDA prints eight.
std::string sysfs_name(std::string_view pci) {
  std::string name(pci);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto colon = name.find(':');
  if (std::ranges::count(name, ':') < 2) return "0000:" + name;
  return fmt::format("{:04x}{}", number<unsigned>(name.substr(0, colon), 16).value_or(0),
                     name.substr(colon));
}

/// Free in one cgroup; nullopt where it sets no limit.
std::optional<Bytes> room(const CgroupMemory& cgroup) {
  const auto limit = number<Bytes>(cgroup.limit);  // not of "max"
  if (!limit) return std::nullopt;
  const Bytes usage = number<Bytes>(cgroup.usage).value_or(0);
  // Version 1 counts descendants only in the total_ fields; its usage is of all of them.
  const auto total = field<Bytes>(cgroup.stat, "total_inactive_file");
  const Bytes cache = total ? *total : field<Bytes>(cgroup.stat, "inactive_file").value_or(0);
  const Bytes used = usage - std::min(usage, cache);
  return *limit - std::min(*limit, used);
}

std::vector<int> only_allowed(std::span<const int> cpus) {
  std::vector<int> both;
  std::ranges::set_intersection(cpus, allowed_cpus(), std::back_inserter(both));
  return both;
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    std::string_view range = take(text, ",");
    const auto first = number<int>(take(range, "-"));
    const auto last = range.empty() ? first : number<int>(range);
    if (!first || !last || *first < 0 || *last < *first) break;
    cpus.resize(cpus.size() + static_cast<std::size_t>(*last - *first + 1));
    std::iota(cpus.end() - (*last - *first + 1), cpus.end(), *first);
  }
  return cpus;
}

const std::vector<int>& allowed_cpus() {
  static const std::vector<int> cpus = [] {
    std::string_view status;
    const std::string text = read_text("/proc/self/status");
    constexpr std::string_view key = "Cpus_allowed_list:";
    if (const auto at = text.find(key); at != std::string::npos)
      status = std::string_view(text).substr(at + key.size());
    auto allowed = parse_cpu_list(take(status, "\n"));
    if (allowed.empty()) {
      allowed.resize(std::max(1u, std::thread::hardware_concurrency()));
      std::iota(allowed.begin(), allowed.end(), 0);
    }
    return allowed;
  }();
  return cpus;
}

std::vector<NumaNode> numa_nodes(const std::string& sysfs) {
  const std::string folder = sysfs + "/devices/system/node/";
  std::vector<NumaNode> nodes;
  for (const int number : parse_cpu_list(read_text(folder + "online"))) {
    const std::string node = fmt::format("{}node{}/", folder, number);
    const Bytes memory = kibibytes(read_text(node + "meminfo"), "MemTotal:");
    const auto cpus = parse_cpu_list(read_text(node + "cpulist"));
    if (memory > 0) nodes.push_back({number, only_allowed(cpus), memory});
  }
  // Memory that a virtual machine got later may be missing in what its only node says.
  const Bytes all = kibibytes(read_text("/proc/meminfo"), "MemTotal:");
  if (nodes.empty()) nodes.push_back({0, allowed_cpus(), all});
  if (nodes.size() == 1) nodes[0].memory_bytes = std::max(nodes[0].memory_bytes, all);
  return nodes;
}

Host host_facts() {
  Host host;
  if (utsname system{}; uname(&system) == 0) {
    host.name = system.nodename;
    host.kernel = system.release;
  }
  host.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  host.allowed_cpus = allowed_cpus();
  host.nodes = numa_nodes();
  if (const Bytes total = kibibytes(read_text("/proc/meminfo"), "MemTotal:"); total > 0)
    host.memory_bytes = total;
  const Launched by = launched();
  host.rank = by.rank;
  host.ranks = by.ranks;
  host.slurm = variables(is_slurm_fact);
  return host;
}

Launched launched() {
  using Names = std::pair<const char*, const char*>;
  for (const auto& [rank, ranks] :
       {Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Names{"PMI_RANK", "PMI_SIZE"},
        Names{"SLURM_PROCID", "SLURM_NTASKS"}}) {
    Launched found{int_variable(rank), int_variable(ranks)};
    if (!found.rank || !found.ranks) continue;
    // In a batch script Slurm tells of the tasks that srun may start.
    const bool started = rank != std::string_view("SLURM_PROCID") || std::getenv("SLURM_STEP_ID");
    found.several = *found.ranks > 1 && started;
    found.pty = rank == std::string_view("OMPI_COMM_WORLD_RANK");
    return found;
  }
  return {};
}

std::map<std::string, std::string> cuda_environment() {
  return variables([](std::string_view name) { return name.starts_with("CUDA_"); });
}

NearCpus near_cpus(std::string_view pci, const std::string& sysfs) {
  const std::string folder = sysfs + "/bus/pci/devices/" + sysfs_name(pci);
  NearCpus near;
  near.all = parse_cpu_list(read_text(folder + "/local_cpulist"));
  near.cpus = only_allowed(near.all);
  // The kernel says -1 where the firmware does not tell.
  if (const auto node = number<int>(read_text(folder + "/numa_node")); node && *node >= 0)
    near.numa = node;
  return near;
}

std::vector<std::string> memory_cgroups(std::string_view cgroup, std::string_view mountinfo) {
  // Of version 1's hierarchies only that of the memory controller counts; version 2's line has
  // number 0 and no controllers.
  std::map<bool, std::string> paths;
  while (!cgroup.empty()) {
    std::string_view line = take(cgroup, "\n");
    const bool unified = take(line, ":") == "0";
    std::string_view controllers = take(line, ":");
    bool memory = unified;
    while (!controllers.empty()) memory |= take(controllers, ",") == "memory";
    if (memory) paths[unified] = line;
  }
  std::vector<std::string> folders;
  while (!mountinfo.empty()) {
    // "31 23 0:28 ROOT MOUNT OPTIONS [TAG...] - TYPE DEVICE SUPEROPTIONS"
    const auto words = words_of(take(mountinfo, "\n"));
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const bool unified = dash[1] == "cgroup2";
    bool memory = unified;
    if (std::string_view options = dash[3]; dash[1] == "cgroup")
      while (!options.empty()) memory |= take(options, ",") == "memory";
    if (!memory || !paths.contains(unified)) continue;
    const std::string mount(words[4]);
    std::string below = paths[unified];
    const std::string_view root = words[3];
    if (root != "/" && below.starts_with(root)) below.erase(0, root.size());
    // A process that was moved out of its cgroup namespace has a path that the mount does not show.
    if (below.starts_with("/..")) below.clear();
    while (below.size() > 1) {
      folders.push_back(mount + below);
      below.erase(below.rfind('/'));
    }
    folders.push_back(mount);
  }
  return folders;
}

Bytes available_memory(std::string_view meminfo, std::span<const CgroupMemory> cgroups) {
  const auto available = field<Bytes>(meminfo, "MemAvailable:");
  Bytes bytes = available ? *available * 1024 : kibibytes(meminfo, "MemFree:");
  for (const CgroupMemory& cgroup : cgroups)
    if (const auto free = room(cgroup)) bytes = std::min(bytes, *free);
  return bytes;
}

Bytes available_memory() {
  std::vector<CgroupMemory> cgroups;
  for (const std::string& folder :
       memory_cgroups(read_text("/proc/self/cgroup"), read_text("/proc/self/mountinfo"))) {
    const std::string file = folder + "/memory.";
    CgroupMemory cgroup{read_text(file + "max"), read_text(file + "current"), {}};
    if (cgroup.limit.empty())
      cgroup = {read_text(file + "limit_in_bytes"), read_text(file + "usage_in_bytes"), {}};
    if (cgroup.limit.empty()) continue;
    cgroup.stat = read_text(file + "stat");
    cgroups.push_back(std::move(cgroup));
  }
  return available_memory(read_text("/proc/meminfo"), cgroups);
}

Bytes node_memory(std::string_view meminfo) {
  return kibibytes(meminfo, "MemFree:") + kibibytes(meminfo, "Active(file):") +
         kibibytes(meminfo, "Inactive(file):");
}

Bytes available_on_node(int node) {
  const std::string folder = "/sys/devices/system/node/";
  const bool alone = parse_cpu_list(read_text(folder + "has_memory")).size() < 2;
  const auto text = read_text(fmt::format("{}node{}/meminfo", folder, node));
  const Bytes host = available_memory();
  return alone || text.empty() ? host : std::min(host, node_memory(text));
}

std::optional<Nanos> parse_schedstat(std::string_view text) {
  const auto words = words_of(text);
  return words.size() < 2 ? std::nullopt : number<Nanos>(words[1]);
}

std::optional<Nanos> run_queue_delay() {
  std::optional<Nanos> sum;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string task = thread.path().string();
    if (read_text(task + "/comm") != std::string(queue_thread_name) + '\n') continue;
    if (const auto delay = parse_schedstat(read_text(task + "/schedstat")))
      sum = sum.value_or(0) + *delay;
  }
  return sum;
}

Nanos thread_queue_delay() {
  return parse_schedstat(read_text("/proc/thread-self/schedstat")).value_or(0);
}

}  // namespace mgpu
