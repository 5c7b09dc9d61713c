#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Packs a release and tries the packages as their users do: the .deb is installed into a fresh system of this
# distribution, its binary, man pages and completions are used there, and it is removed, which must leave nothing.
# Without debootstrap, or where namespaces are not allowed, the .deb is only unpacked, which is said.
# usage: tests/package_test.sh [BUILD]
# BUILD holds a build of the preset `package`; without it that is made in build/package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:-build/package}
if (($# == 0)); then
  cmake --preset package && cmake --build --preset package
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "package: $1" >&2
  exit 1
}

cpack --config "$build/CPackConfig.cmake" -B "$folder/packed" >"$folder/log" || { cat "$folder/log" && exit 1; }
deb=$(ls "$folder"/packed/mgpu_*.deb)
archive=$(ls "$folder"/packed/mgpu-*.tar.gz)

pages=()
for page in man/*.1; do
  pages+=("$(basename "$page" .1)")
done
expected=(bin/mgpu share/bash-completion/completions/mgpu share/fish/vendor_completions.d/mgpu.fish
  share/zsh/vendor-completions/_mgpu share/doc/mgpu/copyright share/doc/mgpu/README.md
  share/doc/mgpu/CHANGELOG.md)
while IFS= read -r file; do
  expected+=("share/doc/mgpu/$file")
done < <(find docs examples -type f)
for page in "${pages[@]}"; do expected+=("share/man/man1/$page.1"); done
printf '%s\n' "${expected[@]}" | sort >"$folder/expected"

dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n 's,^\./usr/\(.*[^/]\)$,\1,p' | sort | diff "$folder/expected" - ||
  fail 'the .deb holds other files'
tar -tf "$archive" | sed -n 's,^[^/]*/\(.*[^/]\)$,\1,p' | sort | diff "$folder/expected" - ||
  fail 'the archive holds other files'
mkdir "$folder/archive"
tar -xf "$archive" -C "$folder/archive" --strip-components=1
"$folder/archive/bin/mgpu" --version

dpkg-deb --field "$deb" Package Version Architecture Depends Suggests
depends=$(dpkg-deb --field "$deb" Depends | sed 's/ *([^)]*)//g; s/, */,/g')
[[ ,$depends, =~ ,libhwloc ]] || fail 'Depends lacks the libraries of the binary'

if ((EUID != 0)) || ! command -v debootstrap >/dev/null || ! unshare --mount --pid --fork true; then
  dpkg-deb -x "$deb" "$folder/system"
  "$folder/system/usr/bin/mgpu" --version
  echo 'package: not root, no debootstrap or no namespaces: unpacked, but not installed'
  exit
fi

# Nothing but the smallest system, what the package depends on, and what its files are for.
# shellcheck source=/dev/null
. /etc/os-release
options=(--variant=minbase "--include=$depends,bash-completion,fish,man-db,zsh")
if [[ $ID == ubuntu ]]; then options+=("--components=main,universe"); fi
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
  sed -n "s/^$VERSION_CODENAME //p" | head -n 1)
system=$folder/system
debootstrap "${options[@]}" "$VERSION_CODENAME" "$system" "$mirror" >"$folder/log" 2>&1 ||
  { tail "$folder/log" && fail 'debootstrap failed'; }

# With namespaces of its own: what is mounted and started there goes with it.
inside() {
  LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    unshare --mount --pid --fork --root="$system" --wd=/ --mount-proc "$@"
}
# The indexes of dpkg, man-db and the shells are theirs.
files() {
  (cd "$system" && find . -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/cache -prune -o \
    -path ./var/log -prune -o -path ./root -prune -o -path ./tmp -prune -o -print | sort)
}

files >"$folder/before"
cp "$deb" "$system/tmp/mgpu.deb"
inside dpkg -i /tmp/mgpu.deb >"$folder/log" 2>&1 || { cat "$folder/log" && fail 'the .deb cannot be installed'; }

inside mgpu --version
inside mgpu copy --backend host --host-devices 1 --size 1MiB --seconds 0.1 | head -n 2
status=0
inside mgpu copy >/dev/null 2>"$folder/log" || status=$?
((status == 3)) || fail "without a GPU, mgpu copy ends with $status"
grep -q -e '--backend host' "$folder/log" || fail 'without a GPU, mgpu copy does not name the host backend'

for page in "${pages[@]}"; do
  inside man "$page" 2>&1 | grep -q "^NAME" || fail "man $page shows nothing"
done
# shellcheck disable=SC2016
inside bash --norc -c '. /usr/share/bash-completion/bash_completion
  __load_completion mgpu; COMP_WORDS=(mgpu co); COMP_CWORD=1; _mgpu; [[ " ${COMPREPLY[*]} " == *" copy "* ]]' ||
  fail 'bash does not complete'
# shellcheck disable=SC2016
inside zsh -fc 'autoload -U compinit && compinit -D && [[ $_comps[mgpu] == _mgpu ]] && autoload +X _mgpu' ||
  fail 'zsh does not find the completion'
inside fish -c 'complete -C "mgpu co"' | grep -q '^copy' || fail 'fish does not complete'

inside dpkg -P mgpu >"$folder/log" 2>&1 || { cat "$folder/log" && fail 'the .deb cannot be removed'; }
files | diff "$folder/before" - || fail 'removing left something'
echo 'package: installed, used and removed'
