// SPDX-License-Identifier: MIT
// The fields of a comparison, by the names and in the order of the JSON document. Knows no format.
#pragma once

#include "model/comparison.hpp"
#include "model/fields.hpp"

namespace mgpu {

template <Of<ComparisonRow> T, class V>
void describe(T& r, V&& v) {
  v("key", r.key);
  v("case", r.what);
  v("base", r.base.ns);
  v("new", r.current.ns);
  v("metric", r.metric);
  v("ratio", r.ratio);
  v("ratio_low", r.ratio_low);
  v("ratio_high", r.ratio_high);
  v("tolerance", r.tolerance);
  v("verdict", r.verdict);
  v("reason", r.reason);
  v("mode", r.mode);
  v("units_base", r.base.units);
  v("units_new", r.current.units);
  v("alternated", r.alternated);
  v("run_delay_base", r.base.run_delay);
  v("run_delay_new", r.current.run_delay);
  v("modes_base", r.base.modes);
  v("modes_new", r.current.modes);
}

template <Of<UnmatchedCase> T, class V>
void describe(T& u, V&& v) {
  v("side", u.side);
  v("key", u.key);
  v("case", u.what);
  v("reason", u.reason);
}

template <Of<Difference> T, class V>
void describe(T& d, V&& v) {
  v("what", d.what);
  v("base", d.base);
  v("new", d.current);
}

template <Of<Comparison> T, class V>
void describe(T& c, V&& v) {
  v("rows", c.rows);
  v("unmatched", c.unmatched);
  v("differences", c.differences);
  v("forced", c.forced);
}

}  // namespace mgpu
