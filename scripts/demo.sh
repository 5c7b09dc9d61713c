#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds a release of mgpu and runs its main job: on all GPUs, or on the CPUs where there is no usable GPU.
# --with-cuda also installs NVIDIA's compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-deps.sh "$@"
cmake --workflow --preset release

echo '$ mgpu copy'
status=0
build/release/mgpu copy || status=$?
if ((status == 3)); then
  echo 'No usable GPU, so the CPUs copy:'
  echo '$ mgpu copy --backend host'
  exec build/release/mgpu copy --backend host
fi
exit "$status"
