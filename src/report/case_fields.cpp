// SPDX-License-Identifier: MIT
#include "report/case_fields.hpp"

#include "model/fields.hpp"
#include "model/schedule.hpp"
#include "report/phrases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mgpu {
namespace {

const Case plain;

template <class E>
std::string word(E value) {
  return std::string(name(value));
}

std::string said_if(bool say, std::string phrase) {
  return say ? std::move(phrase) : std::string();
}

bool is_managed(const Case& c) {
  return c.memory == MemoryKind::managed;
}

std::string place_phrase(std::string_view side, const Place& place, BackendKind backend) {
  switch (place.kind) {
    case Place::Kind::local:
      break;
    case Place::Kind::device:
      return fmt::format("{} {} {}", side, device_noun(backend), place.index);
    case Place::Kind::host:
      return fmt::format("{} host", side);
    case Place::Kind::node:
      return fmt::format("{} NUMA node {}", side, place.index);
  }
  return "";
}

std::string home_phrase(const Case& c, BackendKind backend) {
  if (c.from == c.to) return place_phrase("home", c.from, backend);
  const std::string from = place_phrase("from", c.from, backend),
                    to = place_phrase("to", c.to, backend);
  return from + (from.empty() || to.empty() ? "" : ", ") + to;
}

// A row that was skipped for its devices has none.
std::string memory_cell(const Case& c) {
  return c.source_memory == c.destination_memory
             ? word(c.source_memory)
             : word(c.source_memory) + " -> " + word(c.destination_memory);
}

std::string gpus_cell(const Case& c) {
  return c.gpus.empty() ? "-" : fmt::format("{}", fmt::join(c.gpus, ","));
}

std::string size_cell(const Case& c) {
  return c.size == 0 ? "-" : format_bytes(c.size);
}

std::string prefetch_cell(const Case& c) {
  return word(c.prefetch) +
         (c.prefetch_repeats == 1 ? "" : fmt::format(" x {}", c.prefetch_repeats));
}

bool split_follows(const Case& c) {
  return std::cmp_equal(c.split, c.gpus.size());
}

bool align_follows(const Case& c) {
  return c.align == (is_managed(c) ? managed_block : Bytes{16});
}

constexpr auto fields = std::to_array<CaseField>({
    {"gpus", true, false, gpus_cell,
     [](const Case& c, BackendKind backend) {
       return counted(c.gpus.size(), device_noun(backend));
     },
     nullptr},
    {"size", true, true, size_cell, [](const Case& c, BackendKind) { return format_bytes(c.size); },
     nullptr},
    {"memory", false, true, memory_cell, [](const Case& c, BackendKind) { return memory_cell(c); },
     nullptr},
    {"runtime", false, false,
     [](const Case& c) { return c.runtime ? word(*c.runtime) : std::string("-"); },
     [](const Case& c, BackendKind) { return c.runtime ? "runtime " + word(*c.runtime) : ""; },
     nullptr},
    {"home", true, false,
     [](const Case& c) {
       return to_string(c.from) + (c.from == c.to ? "" : " -> " + to_string(c.to));
     },
     home_phrase, nullptr},
    {"bidirectional", false, false,
     [](const Case& c) { return std::string(c.bidirectional ? "yes" : "no"); },
     [](const Case& c, BackendKind) { return said_if(c.bidirectional, "bidirectional"); }, nullptr},
    {"split", true, false, [](const Case& c) { return std::to_string(c.split); },
     [](const Case& c, BackendKind) {
       return said_if(!split_follows(c), counted(static_cast<std::uint64_t>(c.split), "slice"));
     },
     split_follows},
    {"align", true, false, [](const Case& c) { return format_bytes(c.align); },
     [](const Case& c, BackendKind) {
       return said_if(!align_follows(c), "align " + format_bytes(c.align));
     },
     align_follows},
    {"engine", false, true, [](const Case& c) { return word(c.engine); },
     [](const Case& c, BackendKind) { return said_if(c.engine != plain.engine, word(c.engine)); },
     nullptr},
    {"access", true, false, [](const Case& c) { return std::to_string(c.access); },
     [](const Case& c, BackendKind) {
       return said_if(c.access != plain.access, fmt::format("access {}", c.access));
     },
     nullptr},
    {"batch", true, false, [](const Case& c) { return std::to_string(c.batch); },
     [](const Case& c, BackendKind) {
       return said_if(c.batch != plain.batch, fmt::format("batch {}", c.batch));
     },
     nullptr},
    {"prefetch", false, false, prefetch_cell,
     [](const Case& c, BackendKind) {
       return said_if(is_managed(c) || c.prefetch != plain.prefetch,
                      "prefetch " + prefetch_cell(c));
     },
     nullptr},
    {"cold", false, false, [](const Case& c) { return std::string(c.cold ? "yes" : "no"); },
     [](const Case& c, BackendKind) { return said_if(c.cold, "cold"); }, nullptr},
    {"owner wait", false, false, [](const Case& c) { return word(c.owner_wait); },
     [](const Case& c, BackendKind) {
       return said_if(is_managed(c) || c.owner_wait != plain.owner_wait,
                      "owner wait " + word(c.owner_wait));
     },
     nullptr},
    {"owner lock", false, false, [](const Case& c) { return word(c.owner_lock); },
     [](const Case& c, BackendKind) {
       return said_if(c.owner_lock != plain.owner_lock, "owner lock " + word(c.owner_lock));
     },
     nullptr},
    {"advise", false, false, [](const Case& c) { return word(c.advise); },
     [](const Case& c, BackendKind) {
       return said_if(c.advise != plain.advise, "advise " + word(c.advise));
     },
     nullptr},
    {"threads", false, false, [](const Case& c) { return word(c.threads); },
     [](const Case& c, BackendKind) {
       return said_if(c.threads != plain.threads, "threads " + word(c.threads));
     },
     nullptr},
    {"peer", false, false, [](const Case& c) { return word(c.peer); },
     [](const Case& c, BackendKind) {
       return said_if(c.peer != plain.peer, "peer " + word(c.peer));
     },
     nullptr},
});

bool is_size(const CaseField& field) {
  return field.header == "size";
}

// Of cases that agree on the field, one may leave it out as its default and another not.
std::string phrase_of(const CaseField& field, std::span<const Case* const> cases,
                      BackendKind backend) {
  for (const Case* what : cases)
    if (std::string phrase = field.phrase(*what, backend); !phrase.empty()) return phrase;
  return "";
}

bool varies(const CaseField& field, std::span<const Case* const> cases) {
  const auto same = [&](const Case* what) { return field.cell(*what) == field.cell(*cases[0]); };
  const auto follows = [&](const Case* what) { return field.follows && field.follows(*what); };
  return !std::ranges::all_of(cases, same) && !std::ranges::all_of(cases, follows);
}

// "4 GB managed", but "managed memory" where sizes vary.
std::string sentence(std::span<const Case* const> cases, BackendKind backend) {
  std::string text;
  bool after_size = false;
  for (const CaseField& field : fields) {
    if (varies(field, cases)) continue;
    const std::string phrase = phrase_of(field, cases, backend);
    if (phrase.empty()) continue;
    const bool memory = field.header == "memory";
    text += (text.empty() ? "" : memory && after_size ? " " : ", ") + phrase;
    if (memory && !after_size) text += " memory";
    after_size = is_size(field);
  }
  return text;
}

std::vector<const Case*> cases_of(std::span<const CaseResult> results) {
  std::vector<const Case*> cases;
  for (const CaseResult& result : results) cases.push_back(&result.what);
  return cases;
}

}  // namespace

std::string case_phrase(const Case& what, BackendKind backend) {
  const Case* const one = &what;
  return sentence({&one, 1}, backend);
}

std::string common_phrase(std::span<const CaseResult> cases, BackendKind backend) {
  return sentence(cases_of(cases), backend);
}

std::vector<const CaseField*> varying_fields(std::span<const CaseResult> cases) {
  const std::vector<const Case*> all = cases_of(cases);
  std::vector<const CaseField*> varying;
  for (const CaseField& field : fields)
    if (varies(field, all)) varying.push_back(&field);
  return varying;
}

std::string series_name(const Case& what, std::span<const CaseField* const> named) {
  std::vector<std::string> parts;
  for (const CaseField* field : named)
    if (!is_size(*field))
      parts.push_back(field->speaks ? field->cell(what)
                                    : fmt::format("{} {}", field->header, field->cell(what)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_measured(const CaseResult& result) {
  return result.outcome == OutcomeKind::measured && result.samples > 0;
}

bool has_several_cases(std::span<const CaseResult> cases) {
  return std::ranges::any_of(cases, [&](const CaseResult& result) {
    return result.what.gpus != cases[0].what.gpus ||
           identity_fields(result.what) != identity_fields(cases[0].what);
  });
}

}  // namespace mgpu
