#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds mgpu with its tests and runs them all. --with-cuda also installs NVIDIA's compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-deps.sh --test "$@"
CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)} cmake --workflow --preset dev
