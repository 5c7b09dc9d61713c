// SPDX-License-Identifier: MIT
// Counts what unified memory did during some work, with CUPTI's unified-memory activity. Absent or
// refused is normal: then the work is done uncounted.
#pragma once

#include "backend/cupti_calls.hpp"
#include "model/evidence.hpp"

#include <functional>

namespace mgpu {

/// Does `work` exactly once and gives its totals, with `passes` 0; or "CUPTI: " and why there are
/// none. What `work` throws goes on to the caller, with nothing being counted any more. CUDA has
/// contexts on all GPUs of `work`, and `work` leaves them idle: what they still do is not counted.
/// Blocking; the work is slower than uncounted. One at a time in a process.
Counted count_migrations(
    const std::function<void()>& work,
    const std::function<CuptiCalls()>& load = [] { return load_cupti(); });

/// Adds what one record says; nothing of another kind, or of a counter that is unknown.
void add_record(Counters& counters, const CuptiRecord& record);

}  // namespace mgpu
