# SPDX-License-Identifier: MIT
# Completion of mgpu for fish.

# The ordinals of the GPUs that the kernel's driver lists: nothing here starts CUDA.
function __mgpu_ordinals
    set -l gpus /proc/driver/nvidia/gpus/*/
    test (count $gpus) -gt 0; and seq 0 (math (count $gpus) - 1)
end

# The words, each behind the entries of a list that stand before the last comma.
function __mgpu_behind_comma
    set -l before (string match -r '^.*,' -- (string replace -r '^--[a-z-]+=' '' -- (commandline -ct)))
    for word in $argv
        echo "$before$word"
    end
end

# In a sweep options of a case take lists, else one word.
function __mgpu_list
    if __fish_seen_subcommand_from sweep
        __mgpu_behind_comma $argv
    else
        printf '%s\n' $argv
    end
end

function __mgpu_gpus
    __mgpu_behind_comma all (__mgpu_ordinals) | string match -v '*,all'
end

complete -c mgpu -f
complete -c mgpu -s h -l help -d 'show help'
complete -c mgpu -s V -l version -d 'show the version'

complete -c mgpu -n __fish_use_subcommand -a copy -d 'measure one case'
complete -c mgpu -n __fish_use_subcommand -a sweep -d 'measure every combination of many cases'
complete -c mgpu -n __fish_use_subcommand -a topo -d 'show what the machine is, and what its links do'
complete -c mgpu -n __fish_use_subcommand -a show -d 'render saved results again'
complete -c mgpu -n __fish_use_subcommand -a compare -d 'say which cases are faster or slower'
complete -c mgpu -n __fish_use_subcommand -a merge -d 'put the results of many nodes together'
complete -c mgpu -n __fish_use_subcommand -a help -d 'show the options of a command'
complete -c mgpu -n '__fish_seen_subcommand_from help' -a 'copy sweep topo show compare merge'
complete -c mgpu -n '__fish_seen_subcommand_from show compare merge' -F

complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l backend -x -a 'cuda host' -d 'what copies'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l host-devices -x -d 'CPU devices of the host backend'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l gpus -x -a '(__mgpu_gpus)' -d 'devices that copy, in this order'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l size -x -d 'bytes of the source array'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l memory -x -a '(__mgpu_list device managed pinned pageable)' -d 'kind of memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l unified -d 'the same as --memory managed'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l home -x -a '(__mgpu_list local host (__mgpu_ordinals))' -d 'where the arrays live'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l from -x -a '(__mgpu_list local host (__mgpu_ordinals))' -d 'where the source lives'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l to -x -a '(__mgpu_list local host (__mgpu_ordinals))' -d 'where the destination lives'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l bidirectional -d 'copy the other way at the same time'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l split -x -d 'number of slices'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l align -x -d 'where slices may meet'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l engine -x -a '(__mgpu_list kernel memcpy)' -d 'a copy kernel, or copies of the driver'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l access -x -a '(__mgpu_list 4 8 16)' -d 'bytes a thread of the kernel moves per access'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l batch -x -d 'copies between two clock readings'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l peer -x -a '(__mgpu_list auto on off)' -d 'access to the memory of other GPUs'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l runtime -x -a '(__mgpu_list plain cudajl-5.1 cudajl-5.4 cudajl-5.7 cudajl-5.7-nosync cudajl-6.3)' -d 'the policies of a runtime'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l prefetch -x -a '(__mgpu_list none once slice array)' -d 'when managed memory is moved'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l no-prefetch -d 'the same as --prefetch none'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l cold -d 'bring managed arrays back before every sample'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l owner-wait -x -a '(__mgpu_list none host event)' -d 'how a stream waits for the last user'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l advise -x -a '(__mgpu_list none preferred accessed-by read-mostly)' -d 'what the driver is told of managed memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l threads -x -a '(__mgpu_list pool spawn task single)' -d 'which threads submit the copies'
complete -c mgpu -n '__fish_seen_subcommand_from sweep' -l preset -x -a 'issue-2615 scaling' -d 'a known table of cases'
complete -c mgpu -n '__fish_seen_subcommand_from sweep' -l list-presets -d 'show the known tables'
complete -c mgpu -n '__fish_seen_subcommand_from sweep' -l resume -r -F -d 'keep the cases of a file and add those that it lacks'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l samples -x -d 'end after this many samples'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l seconds -x -d 'end after this time'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l warmup -x -d 'passes before the first sample'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l until -x -d 'end once the median is known this well'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l timeout -x -d 'longest time of one step'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l verify -x -a 'ends every none' -d 'when copied bytes are checked'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l no-verify -d 'the same as --verify none'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l no-affinity -d 'pin neither threads nor host memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l oversubscribe -d 'managed arrays may exceed what is free'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l counters -d 'count the migrations of managed memory'
complete -c mgpu -n '__fish_seen_subcommand_from copy' -l timeline -r -F -d 'write a Chrome trace, or bars for -'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l expect -x -d 'a median rate that must be reached'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep' -l baseline -r -F -d 'a saved result that must not be faster'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep compare' -l metric -x -a 'median min mean' -d 'what is compared'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep compare' -l tolerance -x -d 'up to how much longer is not slower'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l dry-run -d 'print the plan and measure nothing'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo' -l machine -r -F -d 'plan for a recorded machine'
complete -c mgpu -n '__fish_seen_subcommand_from topo' -l measure -a 'pairs all' -d 'measure rates and latencies'
complete -c mgpu -n '__fish_seen_subcommand_from topo' -l gpus -x -a '(__mgpu_gpus)' -d 'devices to measure'
complete -c mgpu -n '__fish_seen_subcommand_from topo' -l size -x -d 'bytes of a copy'
complete -c mgpu -n '__fish_seen_subcommand_from topo' -l engine -x -a 'kernel memcpy' -d 'the only engine'
complete -c mgpu -n '__fish_seen_subcommand_from merge' -l outlier -x -d 'how much a GPU may differ from the fleet'
complete -c mgpu -n '__fish_seen_subcommand_from merge' -l exclude-file -r -F -d 'write the nodes to leave out'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show compare merge' -l format -x -a 'text json jsonl csv markdown' -d 'what stdout carries'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show compare merge' -l json -d 'the same as --format json'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show compare merge' -s o -l output -r -F -d 'also write a file'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show merge' -l append -d 'add to a .jsonl file that is there'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show compare merge' -l force -d 'replace a .jsonl file that is there'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep show' -l histogram -x -a 'auto linear log' -d 'vertical scale of the histogram'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show compare merge' -l color -x -a 'auto always never' -d 'colours in text on stdout'
complete -c mgpu -n '__fish_seen_subcommand_from copy sweep topo show compare merge' -s q -l quiet -d 'neither progress nor notes'
