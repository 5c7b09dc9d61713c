#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How often `mgpu compare` errs: verdicts on pairs of the same case, measured in turns, and on the same pairs with
# every new sample made longer. Prints the rows of a Markdown table.
# usage: compare_experiment.sh [-p PAIRS] [-r ROUNDS] [-k DIR] [-g] [-H] -- [OPTION of mgpu copy]...
#   -p  pairs (100)             -k  keep the results in DIR, and use those that it holds already
#   -r  rounds a side (10)      -g  as if it were not known how long threads waited for a CPU
#   -H  print the head of the table first
# MGPU names the binary (build/release/mgpu).
set -euo pipefail

usage() {
  sed -n '5,9s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

mgpu=${MGPU:-$(dirname "${BASH_SOURCE[0]}")/../build/release/mgpu}
pairs=100 rounds=10 dir='' head='' waits=. note=''
while getopts p:r:k:gH option; do
  case $option in
    p) pairs=$OPTARG ;;
    r) rounds=$OPTARG ;;
    k) dir=$OPTARG ;;
    g) waits='.cases[].run_queue_delay_ns = null' note=', waits not known' ;;
    H) head=yes ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[[ ${1-} != -- ]] || shift
[[ $pairs =~ ^[1-9][0-9]*$ && $rounds =~ ^[1-9][0-9]*$ ]] || usage
if [[ -z $dir ]]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"

# Both sides of a pair take turns, so that what changes on the machine changes for both.
for ((pair = 1; pair <= pairs; ++pair)); do
  [[ -e $dir/$pair.done ]] && continue
  rm -f "$dir/$pair".{base,new}.jsonl
  for ((round = 1; round <= rounds; ++round)); do
    for side in base new; do
      "$mgpu" copy "$@" --quiet --append -o "$dir/$pair.$side.jsonl" >/dev/null
    done
  done
  : >"$dir/$pair.done"
  echo "pair $pair of $pairs" >&2
done

# verdicts PERCENT: one verdict a pair and line. A comparison that finds something slower ends with 8.
verdicts() {
  for ((pair = 1; pair <= pairs; ++pair)); do
    jq -c "$waits" "$dir/$pair.base.jsonl" >"$dir/base.jsonl"
    jq -c --argjson factor "$1" "$waits"' | .cases[].samples_ns |= map(. * (100 + $factor) / 100)' \
      "$dir/$pair.new.jsonl" >"$dir/new.jsonl"
    { "$mgpu" compare --json "$dir/base.jsonl" "$dir/new.jsonl" || (($? == 8)); } |
      jq -r '.rows[].verdict'
  done
}

if [[ $head ]]; then
  # shellcheck disable=SC2016
  echo '| `mgpu copy` ... | rounds a side | pairs | every new sample | same | unclear | faster | slower |'
  echo '|---|---:|---:|---:|---:|---:|---:|---:|'
fi
for percent in 0 2 10; do
  found=$(verdicts "$percent")
  row="| \`$*\` | $rounds | $pairs | +$percent%$note |"
  for verdict in same unclear faster slower; do
    row+=" $(grep -cx "$verdict" <<<"$found" || true) |"
  done
  echo "$row"
done
