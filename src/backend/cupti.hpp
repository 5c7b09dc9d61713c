// SPDX-License-Identifier: MIT
// Counts what unified memory did during some work, with CUPTI's unified-memory activity. Absent or
// refused is normal: then the work is done uncounted.
#pragma once

#include "backend/cupti_calls.hpp"
#include "model/evidence.hpp"

#include <functional>
#include <optional>
#include <string>

namespace mgpu {

/// One in a process.
class MigrationCounter {
 public:
  /// Tells CUPTI what is going to be counted. To be made once CUDA has contexts and before the
  /// first managed allocation: of memory that was there before, CUPTI 13.0 tells nothing. Throws
  /// nothing: count() says what failed.
  explicit MigrationCounter(const std::function<CuptiCalls()>& load = [] { return load_cupti(); });

  /// Does `work` exactly once and gives its totals, with `passes` 0; or "CUPTI: " and why there are
  /// none. What `work` throws goes on to the caller, with nothing being counted any more. CUDA has
  /// contexts on all GPUs of `work`, and `work` leaves them idle: what they still do is not
  /// counted. Blocking; the work is slower than uncounted.
  Counted count(const std::function<void()>& work);

 private:
  std::optional<CuptiCalls> calls_;
  std::string why_;  // not, where there are no calls
};

/// Adds what one record says; nothing of another kind, or of a counter that is unknown.
void add_record(Counters& counters, const CuptiRecord& record);

}  // namespace mgpu
