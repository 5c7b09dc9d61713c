# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of mgpu for bash.

# The ordinals of the GPUs that the kernel's driver lists in folder $1: nothing here starts CUDA.
_mgpu_ordinals() {
  local gpus=("$1"/*/) i
  [[ -d ${gpus[0]} ]] || return 0
  for ((i = 0; i < ${#gpus[@]}; i++)); do echo "$i"; done
}

_mgpu() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=''
  local commands='copy topo show' last='-h --help -V --version'
  local driver=/proc/driver/nvidia/gpus devices='--backend --host-devices'
  local output='--format --json -o --output --append --force --color -q --quiet'
  COMPREPLY=()

  # To readline "--format=js" is three words.
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi

  case $previous in
    --backend) words='cuda host' ;;
    --memory) words='device managed' ;;
    --engine) words='kernel memcpy' ;;
    --access) words='4 8 16' ;;
    --peer) words='auto on off' ;;
    --runtime) words='plain cudajl-5.1 cudajl-5.4 cudajl-5.7 cudajl-5.7-nosync cudajl-6.3' ;;
    --prefetch) words='none once slice array' ;;
    --owner-wait) words='none host event' ;;
    --advise) words='none preferred accessed-by read-mostly' ;;
    --threads) words='pool spawn task single' ;;
    --verify) words='ends every none' ;;
    --histogram) words='auto linear log' ;;
    --format) words='text json jsonl csv markdown' ;;
    --color) words='auto always never' ;;
    --home) words="local $(_mgpu_ordinals $driver)" ;;
    --gpus)
      if [[ $current == *,* ]]; then
        mapfile -t COMPREPLY < <(compgen -P "${current%,*}," -W "$(_mgpu_ordinals $driver)" -- "${current##*,}")
        return
      fi
      words="all $(_mgpu_ordinals $driver)"
      ;;
    --host-devices | --size | --split | --align | --batch) return ;;
    --samples | --seconds | --warmup | --until | --timeout) return ;;
    -o | --output | --timeline)
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
  esac

  if [[ -z $words ]]; then
    case $COMP_CWORD:${COMP_WORDS[1]} in
      1:*) words="$commands help $last" ;;
      2:help) words=$commands ;;
      *:copy)
        words="$devices --gpus --size --memory --unified --home --split --align --engine --access
          --batch --peer --runtime --prefetch --no-prefetch --cold --owner-wait --advise --threads
          --samples --seconds --warmup --until --timeout --verify --no-verify --oversubscribe
          --counters --timeline --dry-run $output --histogram $last"
        ;;
      *:topo) words="$devices $output $last" ;;
      *:show)
        words="$output --histogram $last"
        if [[ $current != -* ]]; then
          compopt -o filenames 2> /dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
          return
        fi
        ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _mgpu mgpu
