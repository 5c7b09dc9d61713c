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
  describe_judgement(r, v);
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
