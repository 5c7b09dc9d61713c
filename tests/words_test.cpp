// SPDX-License-Identifier: MIT
#include "model/words.hpp"

#include "model/error.hpp"
#include "model/request.hpp"
#include "model/result.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

using namespace mgpu;

namespace {

bool is_lower_case(std::string_view text, std::string_view joints) {
  const auto is_joint = [&](char c) { return joints.find(c) != joints.npos; };
  if (text.empty() || is_joint(text.front()) || is_joint(text.back())) return false;
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || is_joint(c))) return false;
  return true;
}

}  // namespace

TEMPLATE_TEST_CASE("every word of a vocabulary is unique, readable and found again", "[words]",
                   BackendKind, MemoryKind, Engine, Prefetch, OwnerWait, OwnerLock, Advice, Peer,
                   Threads, Verify, Wait, HistogramScale, Color, Format, OutcomeKind, Mark,
                   ErrorKind, Command, MismatchKind, ReportKind, Runtime, CauseKind) {
  // Kinds of errors are words of the JSON document alone, which writes snake case.
  constexpr std::string_view joints = std::is_same_v<TestType, ErrorKind> ? "_"
                                      : std::is_same_v<TestType, Runtime> ? "-."
                                                                          : "-";
  std::set<std::string_view> names;
  std::set<TestType> values;
  for (const auto& word : vocabulary<TestType>) {
    CAPTURE(word.name, word.help);
    CHECK(names.insert(word.name).second);
    CHECK(values.insert(word.value).second);
    CHECK((is_lower_case(word.name, joints) || word.name == "L2"));
    CHECK(name(word.value) == word.name);
    CHECK(parse_word<TestType>(word.name) == word.value);
    CHECK_FALSE(word.help.empty());
    CHECK_FALSE(word.help.ends_with('.'));
  }
  CHECK_FALSE(names.empty());
}

TEMPLATE_TEST_CASE("the rows of a vocabulary follow its enumerators without a gap", "[words]",
                   BackendKind, MemoryKind, Engine, Prefetch, OwnerWait, OwnerLock, Advice, Peer,
                   Threads, Verify, Wait, HistogramScale, Color, Format, OutcomeKind, Mark,
                   ErrorKind, Command, MismatchKind, ReportKind, Runtime, CauseKind) {
  int next = 0;
  for (const auto& word : vocabulary<TestType>) CHECK(static_cast<int>(word.value) == next++);
}

TEST_CASE("a word is found only as it is written", "[words]") {
  CHECK(parse_word<Engine>("memcpy") == Engine::memcpy);
  CHECK_FALSE(parse_word<Engine>("Memcpy"));
  CHECK_FALSE(parse_word<Engine>("mem"));
  CHECK_FALSE(parse_word<Engine>("memcpy "));
  CHECK_FALSE(parse_word<Engine>(""));
}

TEST_CASE("every kind of error has its documented exit code", "[error]") {
  CHECK(exit_code(ErrorKind::runtime) == 1);
  CHECK(exit_code(ErrorKind::usage) == 2);
  CHECK(exit_code(ErrorKind::no_gpu) == 3);
  CHECK(exit_code(ErrorKind::unavailable) == 4);
  CHECK(exit_code(ErrorKind::memory) == 5);
  CHECK(exit_code(ErrorKind::verification) == 6);
  CHECK(exit_code(ErrorKind::timeout) == 7);
  CHECK(exit_code(ErrorKind::slower) == 8);
  CHECK(exit_code(ErrorKind::nothing_comparable) == 9);
}

TEST_CASE("of two exit codes the graver one wins in either order", "[error]") {
  constexpr std::array gravest_first{130, 6, 7, 1, 5, 4, 8, 2, 3, 9, 0};
  for (std::size_t i = 0; i < gravest_first.size(); ++i)
    for (std::size_t j = i; j < gravest_first.size(); ++j) {
      CAPTURE(gravest_first[i], gravest_first[j]);
      CHECK(graver(gravest_first[i], gravest_first[j]) == gravest_first[i]);
      CHECK(graver(gravest_first[j], gravest_first[i]) == gravest_first[i]);
    }
}

TEST_CASE("of two signals the first is the one that the process ends with", "[error]") {
  CHECK(graver(143, 130) == 143);
  CHECK(graver(130, 143) == 130);
}

TEST_CASE("a bad value names the option, the text and the way out", "[error]") {
  const auto error = bad_value("--size", "4XB", "has no unit: write 4GB");
  CHECK(error.kind == ErrorKind::usage);
  CHECK(std::string(error.what()) == "--size '4XB' has no unit: write 4GB");
  CHECK_FALSE(error.device);
}
