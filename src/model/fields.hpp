// SPDX-License-Identifier: MIT
// The fields of a case and its result, one line each, by the names and in the order of the JSON
// document. Knows no format.
#pragma once

#include "model/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mgpu {

/// `Struct`, const or not: the same description serves writing, reading and hashing.
template <class T, class Struct>
concept Of = std::same_as<std::remove_const_t<T>, Struct>;

/// Follows from other fields: written, never read, no part of an identity.
template <class T>
struct Derived {
  T value;
};

/// Null unless `present`; where it is read as null, the field becomes `absent`.
template <class T>
struct Maybe {
  T& value;
  bool present;
  std::remove_const_t<T> absent;
};

/// A nested object without a struct of its own; `fields` takes the visitor.
template <class F>
struct Group {
  F fields;
};
template <class T>
Derived(T) -> Derived<T>;
template <class F>
Group(F) -> Group<F>;

template <class T>
Maybe<T> maybe(T& value, bool present, std::remove_const_t<T> absent = {}) {
  return {value, present, std::move(absent)};
}

/// Whether T is a `Template<...>`.
template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_a<Template<Args...>, Template> = true;

/// An enumerator as reports spell it: its word in snake case; marks keep theirs.
template <class E>
  requires std::is_enum_v<E>
std::string report_word(E value) {
  std::string word(name(value));
  if constexpr (!std::same_as<E, Mark>)
    std::ranges::replace_if(
        word, [](char c) { return c == '-' || c == '.'; }, '_');
  return word;
}

/// A field as plain text, the same on every machine: words, shortest exact numbers, lists with
/// blanks between, "" where absent.
template <class T>
std::string field_text(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return report_word(value);
  } else if constexpr (std::same_as<T, Place>) {
    return to_string(value);
  } else if constexpr (is_a<T, Derived>) {
    return field_text(value.value);
  } else if constexpr (is_a<T, Maybe>) {
    return value.present ? field_text(value.value) : "";
  } else if constexpr (is_a<T, std::optional>) {
    return value ? field_text(*value) : "";
  } else if constexpr (is_a<T, std::vector>) {
    std::string text;
    for (const auto& item : value) text += (text.empty() ? "" : " ") + field_text(item);
    return text;
  } else {
    return fmt::format("{}", value);
  }
}

template <Of<Case> T, class V>
void describe(T& c, V&& v) {
  v("gpus", c.gpus);
  v("gpu_count", Derived{c.gpus.size()});
  v("memory", c.memory);
  v("source_memory", c.source_memory);
  v("destination_memory", c.destination_memory);
  v("from", c.from);
  v("to", c.to);
  v("bidirectional", c.bidirectional);
  v("split", c.split);
  v("size_bytes", c.size);
  v("size_per_gpu", Derived{c.gpus.empty() ? 0 : c.size / c.gpus.size()});
  v("align", c.align);
  v("engine", c.engine);
  v("access", c.access);
  v("batch", c.batch);
  v("prefetch", c.prefetch);
  v("prefetch_repeats", maybe(c.prefetch_repeats, true, 1));  // older files lack it
  v("cold", c.cold);
  v("owner_wait", c.owner_wait);
  v("owner_lock", c.owner_lock);
  v("advise", c.advise);
  v("runtime", c.runtime);
  v("threads", c.threads);
  v("peer", c.peer);
  v("wait", c.wait);
  v("affinity", maybe(c.affinity, true));  // older files lack it
}

/// What makes two cases the same but for their devices: key and text of every stored field, `gpus`
/// and `affinity` left out.
inline std::vector<std::pair<std::string, std::string>> identity_fields(const Case& what) {
  std::vector<std::pair<std::string, std::string>> fields;
  describe(what, [&]<class T>(std::string_view key, const T& field) {
    if constexpr (!is_a<T, Derived>)
      if (key != "gpus" && key != "affinity") fields.emplace_back(key, field_text(field));
  });
  return fields;
}

template <Of<Summary> T, class V>
void describe(T& s, V&& v) {
  v("min", s.min);
  v("median", s.median);
  v("mean", s.mean);
  v("max", s.max);
  v("sd", s.sd);
  v("p25", s.p25);
  v("p75", s.p75);
  v("p99", s.p99);
  v("median_low", s.median_low);
  v("median_high", s.median_high);
}

template <Of<Rate> T, class V>
void describe(T& r, V&& v) {
  v("median", r.median);
  v("max", r.max);
  v("min", r.min);
}

template <Of<Rates> T, class V>
void describe(T& r, V&& v) {
  v("copied", r.copied);
  v("moved", r.moved);
}

template <Of<Telemetry> T, class V>
void describe(T& t, V&& v) {
  v("sm_mhz", t.sm_mhz);
  v("sm_max_mhz", t.sm_max_mhz);
  v("memory_mhz", t.memory_mhz);
  v("memory_max_mhz", t.memory_max_mhz);
  v("power_w", t.power_w);
  v("power_limit_w", t.power_limit_w);
  v("temperature_c", t.temperature_c);
  v("event_reasons", t.event_reasons);
  v("other_processes", t.other_processes);
}

template <Of<DeviceResult> T, class V>
void describe(T& d, V&& v) {
  v("index", d.index);
  v("bytes", d.bytes);
  v("slices", d.slices);
  v("device_ns", d.device_ns);
  v("device_min_ns", d.device_min_ns);
  v("device_max_ns", d.device_max_ns);
  v("launch_ns", d.launch_ns);
  v("wait_ns", d.wait_ns);
  v("prefetch_ns", d.prefetch_ns);
  v("sync_ns", d.sync_ns);
  v("skew_ns", d.skew_ns);
  v("event_samples", d.event_samples);
  v("rate", d.rate);
  v("of_peak", d.of_peak);
  v("bottleneck", d.bottleneck);
  v("cpus", maybe(d.cpus, !d.cpus.empty()));
  v("before", d.before);
  v("after", d.after);
}

template <Of<DirectionResult> T, class V>
void describe(T& d, V&& v) {
  v("direction", d.direction);
  v("bytes", d.bytes);
  v("time_ns", d.time_ns);
  v("device_ns", d.device_ns);
  v("rate", d.rate);
}

template <Of<Mismatch> T, class V>
void describe(T& m, V&& v) {
  v("kind", m.kind);
  v("offset", m.offset);
  v("expected", m.expected);
  v("got", m.got);
  v("count", m.count);
  v("device", m.device);
  v("slice", m.slice);
}

template <Of<Verification> T, class V>
void describe(T& c, V&& v) {
  v("passes_checked", c.passes_checked);
  v("passes", c.passes);
  v("bytes", c.bytes);
  v("mismatch", c.mismatch);
}

template <Of<Counters::ByCause> T, class V>
void describe(T& c, V&& v) {
  v("user", c.user);
  v("coherence", c.coherence);
  v("prefetch", c.prefetch);
  v("eviction", c.eviction);
  v("access_counter", c.access_counter);
}

template <Of<Counters::Pair> T, class V>
void describe(T& p, V&& v) {
  v("from", maybe(p.from, p.from >= 0, -1));
  v("to", maybe(p.to, p.to >= 0, -1));
  v("bytes", p.bytes);
}

template <Of<Counters> T, class V>
void describe(T& c, V&& v) {
  v("h2d_bytes", c.h2d_bytes);
  v("d2h_bytes", c.d2h_bytes);
  v("d2d_bytes", c.d2d_bytes);
  v("fault_groups", c.fault_groups);
  v("thrashing", c.thrashing);
  v("throttling_ns", c.throttling_ns);
  v("remote_map_bytes", c.remote_map_bytes);
  v("d2d_by_cause", c.d2d_by_cause);
  v("pairs", c.pairs);
  v("passes", c.passes);
}

template <Of<Modes> T, class V>
void describe(T& m, V&& v) {
  v("low_share", m.low_share);
  v("high_share", m.high_share);
  v("low_centre_ns", m.low_centre);
  v("high_centre_ns", m.high_centre);
}

template <Of<Cause> T, class V>
void describe(T& c, V&& v) {
  v("word", c.word);
  v("text", c.text);
  v("cost_ns", c.cost_ns);
  v("cost_share", c.cost_share);
  v("option", c.option);
}

/// The fields of a judgement, of whichever struct is one.
template <class T, class V>
void describe_judgement(T& j, V&& v) {
  v("base", j.base.ns);
  v("new", j.current.ns);
  v("metric", j.metric);
  v("ratio", j.ratio);
  v("ratio_low", j.ratio_low);
  v("ratio_high", j.ratio_high);
  v("tolerance", j.tolerance);
  v("verdict", j.verdict);
  v("reason", j.reason);
  v("mode", j.mode);
  v("units_base", j.base.units);
  v("units_new", j.current.units);
  v("alternated", j.alternated);
  v("run_delay_base", j.base.run_delay);
  v("run_delay_new", j.current.run_delay);
  v("modes_base", j.base.modes);
  v("modes_new", j.current.modes);
}

template <Of<AgainstBaseline> T, class V>
void describe(T& b, V&& v) {
  v("met", Derived{b.verdict != Verdict::slower});
  describe_judgement(b, v);
}

template <Of<Expected> T, class V>
void describe(T& e, V&& v) {
  v("basis", e.basis);
  v("wanted", e.wanted);
  v("got", e.got);
  v("met", e.met);
}

/// Both efficiencies of a result: one object, or null where it has neither.
struct Efficiency {
  std::optional<double> weak, strong;
};

template <Of<Efficiency> T, class V>
void describe(T& e, V&& v) {
  v("weak", e.weak);
  v("strong", e.strong);
}

template <Of<CaseResult> T, class V>
void describe(T& r, V&& v) {
  const bool sampled = r.samples > 0;
  v("key", r.key);
  v("case", r.what);
  v("outcome", r.outcome);
  v("reason", r.reason);
  v("error_kind", r.error_kind);
  v("samples", r.samples);
  v("samples_stored", Derived{r.samples_ns.size()});
  v("samples_ns", r.samples_ns);
  v("settle_ns", r.settle_ns);
  v("harness_ns", r.harness_ns);
  v("run_queue_delay_ns", r.run_queue_delay_ns);
  v("summary", maybe(r.summary, sampled));
  v("event_median_ns", r.event_median_ns);
  v("bytes_copied", r.bytes_copied);
  v("bytes_moved", r.bytes_moved);
  v("rates", maybe(r.rates, sampled));
  v("basis", maybe(r.basis, true, Basis::moved));  // older files lack it
  v("of_peak", r.of_peak);
  v("bottleneck", r.bottleneck);
  v("per_direction", maybe(r.per_direction, !r.per_direction.empty()));
  v("per_device", r.per_device);
  v("overlap", r.overlap);
  std::optional<Efficiency> efficiency;
  if (r.weak_efficiency || r.strong_efficiency)
    efficiency = Efficiency{r.weak_efficiency, r.strong_efficiency};
  v("efficiency", efficiency);
  if constexpr (!std::is_const_v<T>) {
    const Efficiency read = efficiency.value_or(Efficiency{});
    r.weak_efficiency = read.weak;
    r.strong_efficiency = read.strong;
  }
  v("counters", r.counters);
  v("modes", r.modes);
  v("verified", r.verified);
  v("verification", r.verification);
  v("marks", r.marks);
  v("owner_wait_idle", r.owner_wait_idle);
  v("causes", r.causes);
  v("expect", r.expect);
  v("baseline", r.baseline);
}

}  // namespace mgpu
