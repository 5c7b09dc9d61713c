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
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words='' before=''
  local commands='copy sweep topo show compare merge' last='-h --help -V --version'
  local attached=''
  local driver=/proc/driver/nvidia/gpus devices='--backend --host-devices'
  local shape='--gpus --size --memory --unified --home --from --to --bidirectional --split --align --engine --access --batch --peer
    --runtime --prefetch --no-prefetch --cold --owner-wait --advise --threads'
  local sampling='--samples --seconds --warmup --until --timeout --verify --no-verify --no-affinity --oversubscribe
    --counters --dry-run --machine'
  local rule='--metric --tolerance' output='--format --json -o --output --append --force --color -q --quiet'
  COMPREPLY=()

  # To readline "--format=js" is three words.
  if [[ $current == '=' ]]; then
    current='' attached=yes
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]} attached=yes
  fi

  # The last entry of a list is completed: of GPUs and, in a sweep, of any option of a case.
  if [[ $current == *,* && ($previous == --gpus || ${COMP_WORDS[1]} == sweep) &&
    " $shape " == *[[:space:]]"$previous"[[:space:]]* ]]; then
    before=${current%,*},
  fi

  case $previous in
    --backend) words='cuda host' ;;
    --memory) words='device managed pinned pageable' ;;
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
    --metric) words='median min mean' ;;
    --color) words='auto always never' ;;
    --home | --from | --to) words="local host $(_mgpu_ordinals $driver)" ;;
    --gpus)
      words=$(_mgpu_ordinals $driver)
      if [[ -z $before ]]; then words="all $words"; fi
      [[ $words ]] || return
      ;;
    --measure) if [[ $attached ]]; then words='pairs all'; fi ;;
    --preset) words='issue-2615 scaling' ;;
    --host-devices | --size | --split | --align | --batch) return ;;
    --samples | --seconds | --warmup | --until | --timeout | --expect | --tolerance | --outlier) return ;;
    -o | --output | --resume | --baseline | --timeline | --machine | --exclude-file)
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
        words="$devices $shape $sampling --timeline --expect --baseline $rule $output --histogram $last"
        ;;
      *:sweep)
        words="$devices $shape --preset --list-presets --resume $sampling --expect --baseline $rule $output --histogram $last"
        ;;
      *:topo)
        words="$devices --measure --gpus --size --seconds --engine --timeout --no-verify --dry-run --machine $output $last"
        ;;
      *:show | *:compare | *:merge)
        words="$output --histogram $last"
        if [[ ${COMP_WORDS[1]} == compare ]]; then words="$rule ${output/--append /} $last"; fi
        if [[ ${COMP_WORDS[1]} == merge ]]; then words="--outlier --exclude-file $output $last"; fi
        if [[ $current != -* ]]; then
          compopt -o filenames 2> /dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
          return
        fi
        ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "${current#"$before"}")
}

complete -F _mgpu mgpu
