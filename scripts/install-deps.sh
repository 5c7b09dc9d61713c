#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs by apt what is missing to build mgpu on Debian 12 or Ubuntu 24.04, and says what it installs.
set -euo pipefail

usage='usage: scripts/install-deps.sh [--test] [--lint] [--mpi] [--fuzz] [--with-cuda]
  --test       also what the tests need
  --lint       also what .ci/run checks the sources and packages with
  --mpi        also Open MPI, for MGPU_MPI=ON
  --fuzz       also what scripts/fuzz.sh compiles with
  --with-cuda  also the CUDA 13.0 compiler and runtime, and CUPTI for --counters, from
               NVIDIA'\''s repository'

# A package, or PROGRAM:PACKAGE where any program of that name will do.
wanted=(g++:g++ cmake:cmake ninja:ninja-build pkg-config:pkg-config
  libcli11-dev libfmt-dev libhwloc-dev nlohmann-json3-dev)
with_catch2=false with_cuda=false
for argument in "$@"; do
  case $argument in
    --test)
      with_catch2=true
      wanted+=(dot:graphviz fish:fish gnuplot:gnuplot-nox jq:jq mandoc:mandoc python3-jsonschema zsh:zsh)
      ;;
    --lint)
      wanted+=(clang-format-16 clang-tidy-16 mandoc:mandoc shellcheck:shellcheck
        debootstrap:debootstrap dpkg-shlibdeps:dpkg-dev file:file)
      ;;
    --mpi) wanted+=(libopenmpi-dev openmpi-bin jq:jq) ;;
    --fuzz) wanted+=(clang++-16:clang-16 libclang-rt-16-dev) ;;
    --with-cuda) with_cuda=true ;;
    -h | --help) echo "$usage" && exit ;;
    *) echo "$usage" >&2 && exit 2 ;;
  esac
done

# Succeeds for nvcc 12.4 or later, on PATH or where NVIDIA's packages put it.
nvcc_fits() {
  local nvcc version
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  version=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p') || return 1
  [[ -n $version ]] && dpkg --compare-versions "$version" ge 12.4
}

if ! $with_cuda && ! nvcc_fits && compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo 'GPUs are not used: there is no nvcc 12.4 or later. Add --with-cuda to install it from NVIDIA.'
fi

as_root=()
if ((EUID != 0)); then
  as_root=(sudo)
fi
apt_install() {
  echo "Installing by apt: $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}
updated=false
apt_update() {
  "${as_root[@]}" apt-get update -q
  updated=true
}

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

missing=()
for want in "${wanted[@]}"; do
  package=${want#*:}
  if [[ $want != *:* ]] || ! command -v "${want%:*}" >/dev/null; then
    installed "$package" || missing+=("$package")
  fi
done
if ((${#missing[@]})); then
  apt_update
  apt_install "${missing[@]}"
fi

# The first package here that holds Catch2 3; Ubuntu 24.04 calls it catch2, which on Debian 12 is Catch2 2.
catch2_package() {
  local package version
  for package in libcatch2-dev catch2; do
    version=$(apt-cache policy "$package" | sed -n 's/ *Candidate: //p')
    if dpkg --compare-versions "${version:-0}" ge 3.3; then
      echo "$package"
      return
    fi
  done
}

# Debian 12 has Catch2 3 in its backports, taken from where bookworm itself comes from.
add_backports() {
  local uri
  # shellcheck disable=SC2016
  uri=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^bookworm //p' | head -n 1)
  echo "Adding bookworm-backports of ${uri:=http://deb.debian.org/debian} for Catch2 3"
  "${as_root[@]}" tee /etc/apt/sources.list.d/bookworm-backports.sources >/dev/null <<END
Types: deb
URIs: $uri
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
  apt_update
}

if $with_catch2 && [[ ! -e /usr/include/catch2/catch_test_macros.hpp ]]; then
  $updated || apt_update
  if [[ -z $(catch2_package) ]]; then
    add_backports
  fi
  apt_install "$(catch2_package)"
fi

# The network installation of NVIDIA's CUDA guide: its keyring package adds the repository.
install_cuda() {
  local distribution arch deb
  # shellcheck source=/dev/null
  distribution=$(. /etc/os-release && echo "$ID${VERSION_ID//./}")
  arch=$(uname -m)
  case $distribution-$arch in
    debian12-x86_64 | ubuntu2404-x86_64) ;;
    ubuntu2404-aarch64) arch=sbsa ;;
    *)
      echo "--with-cuda knows Debian 12 and Ubuntu 24.04, not $distribution on $arch" >&2
      exit 1
      ;;
  esac
  $updated || apt_update
  if ! installed cuda-keyring; then
    apt_install ca-certificates curl
    deb=$(mktemp --suffix .deb)
    echo "Adding NVIDIA's repository for $distribution"
    curl -fsSL -o "$deb" \
      "https://developer.download.nvidia.com/compute/cuda/repos/$distribution/$arch/cuda-keyring_1.1-1_all.deb"
    "${as_root[@]}" dpkg -i "$deb"
    rm "$deb"
    apt_update
  fi
  apt_install cuda-nvcc-13-0 cuda-cudart-dev-13-0 cuda-cupti-13-0
}

if $with_cuda && ! nvcc_fits; then
  install_cuda
fi
