#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs each fuzz target for SECONDS (default 1800), as many at a time as there are CPUs: from the
# seeds in tests/fuzz/corpus and from what earlier runs kept in build/fuzz/corpus. On a finding it
# prints the path of the input, which `build/fuzz/targets/TARGET PATH` repeats, and exits 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export seconds=${1:-1800}
if [[ $# -gt 1 || ! $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo 'usage: scripts/fuzz.sh [SECONDS]' >&2
  exit 2
fi
cmake --workflow --preset fuzz

# An input that takes more than 10 s or 512 MiB is a finding as well. The quarantine of freed memory
# would count, and looking for returned stack frames makes each exception five times as slow.
fuzz() {
  local target=$1 log=build/fuzz/$1.log result=0
  mkdir -p "build/fuzz/corpus/$target" build/fuzz/findings
  ASAN_OPTIONS=quarantine_size_mb=16:detect_stack_use_after_return=0 \
    "build/fuzz/targets/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-" \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || result=1
  printf '%-13s %11d inputs, %6d edges\n' "$target" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
    "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)"
  if ((result)); then
    grep -E '^broken promise|runtime error:|ERROR:|what\(\):' "$log" | head -n 3 || true
    echo "$target: finding: $(sed -n 's/.*Test unit written to //p' "$log") (log: $log)"
  fi
  return "$result"
}
export -f fuzz

printf '%s\n' command_line sizes gpu_lists result_files |
  xargs -P "$(nproc)" -I '{}' bash -c 'fuzz {}' || exit 1
