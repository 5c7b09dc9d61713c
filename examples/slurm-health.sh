#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which nodes of this job have a slow GPU? Prints the report of the fleet, and leaves the nodes to
# leave out in RESULTS/slow.txt, for: sbatch --exclude="$(cat mgpu-4711/slow.txt)" ...
# Those that left no result are among them, and end it with exit status 1.
# usage: sbatch --nodes=16 slurm-health.sh [OPTION of mgpu copy]...
# An mgpu that was built with MPI starts the copies of all nodes together. Without Slurm it measures
# this machine. MGPU names the binary (mgpu), RESULTS the folder (mgpu-JOB), OUTLIER the per cent that
# a GPU may differ (5).
#SBATCH --job-name=mgpu-health
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=00:10:00
set -euo pipefail

mgpu=${MGPU:-mgpu}
results=${RESULTS:-mgpu-${SLURM_JOB_ID:-local}}
mkdir -p "$results"
rm -f "$results"/*.json "$results/slow.txt"

launch=() name=$(uname -n)
if [[ ${SLURM_JOB_ID-} ]]; then
  launch=(srun --ntasks-per-node=1 --kill-on-bad-exit=0)
  name=%h.%r
fi
# A node that fails says so in its result, and the others' still count.
"${launch[@]}" "$mgpu" copy "$@" --quiet -o "$results/$name.json" >/dev/null || true

status=0
"$mgpu" merge --outlier "${OUTLIER:-5}" --exclude-file "$results/slow.txt" "$results"/*.json ||
  status=$?

# A node that could not even start has no result to say so.
silent=()
if [[ ${SLURM_JOB_ID-} ]] && command -v scontrol >/dev/null; then
  for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    compgen -G "$results/$host.*json" >/dev/null || silent+=("$host")
  done
fi
if ((${#silent[@]})); then
  hosts=$(IFS=, && echo "${silent[*]}")
  slow=$(cat "$results/slow.txt" 2>/dev/null || true)
  echo "${slow:+$slow,}$hosts" >"$results/slow.txt"
  echo "no result, and so in slow.txt: $hosts" >&2
  exit 1
fi
written=("$results"/*.json)
if ((${#written[@]} < ${SLURM_NNODES:-1})); then
  echo "only ${#written[@]} of $SLURM_NNODES nodes left a result" >&2
  exit 1
fi
exit "$status"
