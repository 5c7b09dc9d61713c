#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A CI job that keeps a baseline: the first run makes it, every later one must not be slower.
# usage: ci-baseline.sh DIR copy|sweep [OPTION]...
# DIR is kept from job to job. A run leaves there verdict.xml for the CI system and comment.md for the pull request.
# MGPU names the binary (mgpu), ROUNDS how often everything is measured (5), TOLERANCE the per cent that may pass (5).
set -euo pipefail

mgpu=${MGPU:-mgpu} rounds=${ROUNDS:-5} tolerance=${TOLERANCE:-5}
dir=${1:?usage: ci-baseline.sh DIR copy|sweep [OPTION]...}
shift

mkdir -p "$dir"
rm -f "$dir"/{new.jsonl,verdict.xml,comment.md}
for ((round = 0; round < rounds; ++round)); do
  "$mgpu" "$@" --quiet --append -o "$dir/new.jsonl" >/dev/null
done

status=9
if [[ -s $dir/baseline.jsonl ]]; then
  status=0
  "$mgpu" compare "$dir/baseline.jsonl" "$dir/new.jsonl" --tolerance "$tolerance" \
    --format markdown -o "$dir/verdict.xml" >"$dir/comment.md" || status=$?
  cat "$dir/comment.md"
fi
# Without a baseline, or with one of other GPUs or cases, this run is the first of its kind.
if ((status == 9)); then
  mv "$dir/new.jsonl" "$dir/baseline.jsonl"
  echo "kept as the baseline: $dir/baseline.jsonl"
  status=0
fi
exit "$status"
