# SPDX-License-Identifier: MIT
# Completion of mgpu for fish.

# The ordinals of the GPUs that the kernel's driver lists: nothing here starts CUDA.
function __mgpu_ordinals
    set -l gpus /proc/driver/nvidia/gpus/*/
    test (count $gpus) -gt 0; and seq 0 (math (count $gpus) - 1)
end

function __mgpu_gpus
    set -l before (string match -r '^.*,' -- (string replace -r '^--gpus=' '' -- (commandline -ct)))
    test -n "$before"; or echo all
    for ordinal in (__mgpu_ordinals)
        echo $before$ordinal
    end
end

complete -c mgpu -f
complete -c mgpu -s h -l help -d 'show help'
complete -c mgpu -s V -l version -d 'show the version'

complete -c mgpu -n __fish_use_subcommand -a copy -d 'measure one case'
complete -c mgpu -n __fish_use_subcommand -a topo -d 'list the devices of this machine'
complete -c mgpu -n __fish_use_subcommand -a show -d 'render a saved result again'
complete -c mgpu -n __fish_use_subcommand -a help -d 'show the options of a command'
complete -c mgpu -n '__fish_seen_subcommand_from help' -a 'copy topo show'
complete -c mgpu -n '__fish_seen_subcommand_from show' -F

complete -c mgpu -n '__fish_seen_subcommand_from copy topo' -l backend -x -a 'cuda host' -d 'what copies'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo' -l host-devices -x -d 'CPU devices of the host backend'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l gpus -x -a '(__mgpu_gpus)' -d 'devices that copy, in this order'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l size -x -d 'bytes of the source array'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l memory -x -a 'device managed' -d 'kind of memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l unified -d 'the same as --memory managed'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l home -x -a 'local (__mgpu_ordinals)' -d 'where the arrays live'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l split -x -d 'number of slices'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l align -x -d 'where slices may meet'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l engine -x -a 'kernel memcpy' -d 'a copy kernel, or copies of the driver'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l access -x -a '4 8 16' -d 'bytes a thread of the kernel moves per access'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l batch -x -d 'copies between two clock readings'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l peer -x -a 'auto on off' -d 'access to the memory of other GPUs'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l runtime -x -a 'plain cudajl-5.1 cudajl-5.4 cudajl-5.7 cudajl-5.7-nosync cudajl-6.3' -d 'the policies of a runtime'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l prefetch -x -a 'none once slice array' -d 'when managed memory is moved'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l no-prefetch -d 'the same as --prefetch none'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l cold -d 'bring managed arrays back before every sample'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l owner-wait -x -a 'none host event' -d 'how a stream waits for the last user'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l advise -x -a 'none preferred accessed-by read-mostly' -d 'what the driver is told of managed memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l threads -x -a 'pool spawn task single' -d 'which threads submit the copies'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l samples -x -d 'end after this many samples'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l seconds -x -d 'end after this time'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l warmup -x -d 'passes before the first sample'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l until -x -d 'end once the median is known this well'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l timeout -x -d 'longest time of one step'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l verify -x -a 'ends every none' -d 'when copied bytes are checked'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l no-verify -d 'the same as --verify none'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l oversubscribe -d 'managed arrays may exceed what is free'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l counters -d 'count the migrations of managed memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l timeline -r -F -d 'write a Chrome trace, or bars for -'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l dry-run -d 'print the plan and measure nothing'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -l format -x -a 'text json jsonl csv markdown' -d 'what stdout carries'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -l json -d 'the same as --format json'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -s o -l output -r -F -d 'also write a file'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -l append -d 'add to a .jsonl file that is there'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -l force -d 'replace a .jsonl file that is there'
complete -c mgpu -n '__fish_seen_subcommand_from copy show' -l histogram -x -a 'auto linear log' -d 'vertical scale of the histogram'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -l color -x -a 'auto always never' -d 'colours in text on stdout'
complete -c mgpu -n '__fish_seen_subcommand_from copy topo show' -s q -l quiet -d 'neither progress nor notes'
