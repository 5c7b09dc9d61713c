#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kills a sweep at random moments and resumes it until it is whole: no case may be lost, none be there twice, and the file must be
# readable after every kill.
# usage: tests/kill_resume.sh MGPU [KILLS]
set -euo pipefail
mgpu=$1 kills=${2:-50}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sweep=("$mgpu" sweep --backend host --size '1MiB..16MiB' --split '1,2' --engine 'kernel,memcpy' --seconds 0.02 --quiet)

cases() { jq -r '.cases[0].key + " " + (.cases[0].case.gpus | tostring)' "$1"; }

"${sweep[@]}" -o "$folder/whole.jsonl" >"$folder/table"
cases "$folder/whole.jsonl" | sort >"$folder/wanted"

killed=0 rounds=0
while ((killed < kills)); do
  file=$folder/run.jsonl
  rm -f "$file"
  rounds=$((rounds + 1))
  for ((;;)); do
    "${sweep[@]}" --resume "$file" >"$folder/table" 2>"$folder/errors" &
    child=$!
    sleep "0.$((RANDOM % 90 + 5))"
    if kill -KILL "$child" 2>/dev/null; then killed=$((killed + 1)); fi
    if wait "$child" 2>/dev/null; then break; fi
    # A fragment behind the last whole line is what a kill may leave, and the reader's business.
    if [[ -s $file ]]; then "$mgpu" show "$file" --quiet >"$folder/shown" || { echo "unreadable after a kill"; exit 1; }; fi
  done
  cases "$file" | sort >"$folder/got"
  diff "$folder/wanted" "$folder/got" || { echo "cases were lost or are there twice"; exit 1; }
done
echo "$killed kills in $rounds sweeps of $(wc -l <"$folder/wanted") cases: none lost, none twice"
