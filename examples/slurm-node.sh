#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures every node of a Slurm job on its own, and shows the results side by side. An mgpu that was
# built with MPI starts the copies of all nodes together.
# usage: sbatch --nodes=4 slurm-node.sh [OPTION of mgpu copy]...
# Without Slurm it measures this machine. MGPU names the binary (mgpu), RESULTS the folder (mgpu-JOB).
#SBATCH --job-name=mgpu
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=00:10:00
set -euo pipefail

mgpu=${MGPU:-mgpu}
results=${RESULTS:-mgpu-${SLURM_JOB_ID:-local}}
mkdir -p "$results"

# One task a node, which sees all GPUs of it. A file with the rank in its name is each rank's own.
launch=() name=$(uname -n)
if [[ ${SLURM_JOB_ID-} ]]; then
  launch=(srun --ntasks-per-node=1)
  name=%h.%r
fi
"${launch[@]}" "$mgpu" copy "$@" --quiet -o "$results/$name.json" >/dev/null

"$mgpu" show "$results"/*.json
