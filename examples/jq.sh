#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Size, engine, median time in ns and moved bytes per second of every measured case, separated by tabs.
# usage: jq.sh FILE...
set -euo pipefail

jq -r '.cases[] | select(.outcome == "measured")
  | [.case.size_bytes, .case.engine, .summary.median, .rates.moved.median] | @tsv' "$@"
