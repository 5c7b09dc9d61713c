#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several ranks under mpirun: one report, a slow one is named, a killed one ends it cleanly.
# usage: mpi_test.sh MGPU [OPTION of mpirun]...
# MGPU was built with MPI. Takes half a minute, on two CPUs.
set -euo pipefail

mgpu=$(realpath "${1:?usage: mpi_test.sh MGPU [OPTION of mpirun]...}")
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

launch() {
  timeout 120 taskset -c 0,1 mpirun "${options[@]}" --bind-to none -n 4 "$@"
}
options=("$@")
fail() {
  echo "mpi_test: $1" >&2
  exit 1
}
# holds FILE FILTER: what jq finds there is true.
holds() {
  jq -e "$2" "$1" >/dev/null || fail "$1: not so: $2"
}
case_of=(copy --backend host --size 16MiB)

"$mgpu" --version | grep -q 'features: .*mpi' || fail "$mgpu is not built with MPI"

launch "$mgpu" "${case_of[@]}" --seconds 1 --json >four.json
holds four.json '.kind == "fleet" and .complete and .exit_code == 0 and .missing == []'
holds four.json '[.gpus[].rank] | sort == [0, 1, 2, 3]'
holds four.json '.distribution | length == 1'
launch "$mgpu" "${case_of[@]}" --seconds 1 >four.txt 2>four.err
[[ $(grep -c '^mgpu' four.txt) == 1 ]] || fail 'there is more than one report'
[[ ! -s four.err ]] || fail "on stderr: $(<four.err)"

# The kernel hardly lets the last rank run beside the others.
cat >slow.sh <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 3 ] && exec nice -n 19 "$@"
exec "$@"
END
cat >told.sh <<'END'
#!/bin/sh
echo $$ >pid.$OMPI_COMM_WORLD_RANK
exec "$@"
END
chmod +x slow.sh told.sh

# Times of ranks that share CPUs vary: one of a few tries is enough.
slow() {
  launch ./slow.sh "$mgpu" "${case_of[@]}" --seconds 3 --json >slow.json
  jq -e '.gpus[] | select(.rank == 3) | .outlier == "slow"' slow.json >/dev/null
}
slow || slow || slow || fail 'a slow rank is not named'

# A rank is killed once all have ended a case.
launch ./told.sh "$mgpu" sweep --backend host --size 1MiB,16MiB,32MiB --seconds 1.5 \
  -o killed.json -o killed.jsonl >killed.txt 2>killed.err &
until [[ -s killed.jsonl && $(wc -l <killed.jsonl) -ge 4 ]]; do sleep 0.05; done
kill -KILL "$(<pid.2)"
code=0
wait $! || code=$?
[[ $code == 137 ]] || fail "a killed rank: mpirun ended with $code"
holds killed.json '.kind == "fleet" and (.complete | not) and .exit_code == 143'
holds killed.json '[.missing[].rank] == [2]'
holds killed.json '.missing[0] | .host != "" and .last_case != ""'
grep -q '^ missing: rank 2' killed.txt || fail "its text: $(<killed.txt)"

# A rank that hangs is given up, whatever its launcher does.
rm -f pid.*
launch ./told.sh "$mgpu" "${case_of[@]}" --seconds 2 --timeout 0.5 -o hung.json >hung.txt 2>hung.err &
until [[ -s pid.1 ]]; do sleep 0.05; done
sleep 1
kill -STOP "$(<pid.1)"
code=0
wait $! || code=$?
kill -KILL "$(<pid.1)" 2>/dev/null || true
[[ $code == 7 ]] || fail "a rank that hangs: mpirun ended with $code"
holds hung.json '[.missing[].rank] == [1] and .error.kind == "timeout" and .exclude != null'

# More ranks than devices, a failure on each, and what cannot be written.
code=0
launch "$mgpu" copy --backend host --host-devices 2 --size 1MiB --samples 5 >few.txt 2>few.err || code=$?
[[ $code == 4 ]] || fail "more ranks than devices: $code"
grep -q '4 ranks of this host share 2 devices' few.err || fail "it says: $(<few.err)"
[[ ! -s few.txt ]] || fail 'there is a report of nothing'

echo 'mpi_test: passed'
