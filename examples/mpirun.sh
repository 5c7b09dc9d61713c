#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures all nodes of an allocation together, with an mgpu that was built with MPI (MGPU_MPI=ON).
# usage: mpirun.sh RANKS [OPTION of mgpu copy]...
# Ranks of a node share its GPUs. MGPU names the binary (mgpu), MPIRUN the launcher with its options
# (mpirun). Leaves fleet.json and cases.jsonl, a line of each rank and case, in the working directory.
set -euo pipefail

ranks=${1:?usage: mpirun.sh RANKS [OPTION of mgpu copy]...}
shift
read -ra launcher <<<"${MPIRUN:-mpirun}"
"${launcher[@]}" -n "$ranks" "${MGPU:-mgpu}" copy "$@" -o fleet.json -o cases.jsonl --force
