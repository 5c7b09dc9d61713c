#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures every node of a Slurm job on its own, and shows the results side by side.
# usage: sbatch --nodes=4 slurm-node.sh [OPTION of mgpu copy]...
# Without Slurm it measures this machine. MGPU names the binary (mgpu), RESULTS the folder (mgpu-JOB).
#SBATCH --job-name=mgpu
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=00:10:00
set -euo pipefail

export MGPU=${MGPU:-mgpu}
export RESULTS=${RESULTS:-mgpu-${SLURM_JOB_ID:-local}}
mkdir -p "$RESULTS"

# One task a node, which sees all GPUs of it.
launch=()
if [[ ${SLURM_JOB_ID-} ]]; then launch=(srun --ntasks-per-node=1); fi
# shellcheck disable=SC2016
"${launch[@]}" bash -c '"$MGPU" copy "$@" --quiet -o "$RESULTS/$(uname -n).json" >/dev/null' node "$@"

"$MGPU" show "$RESULTS"/*.json
