#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the results of a made-up fleet, DIR/node0000.json and so on, to measure mgpu merge with.

One real document of mgpu copy --format json is the template; each node has its own GPUs and times,
the same at every call. Of all GPUs three are slow, by 5, 15 and 60 per cent."""
import argparse
import copy
import json
import pathlib
import random

SLOW = (1.05, 1.15, 1.60)


def shape(template, gpus, samples):
    """The document that all nodes share: its first case, on so many GPUs like its first device."""
    document = copy.deepcopy(template)
    result = document["cases"][0]
    device, part = document["devices"][0], result["per_device"][0]
    result["per_device"] = [dict(part, index=i) for i in range(gpus)]
    document["devices"] = [
        dict(device, index=i, ordinal=i, name="NVIDIA H200", peers=[p for p in range(gpus) if p != i])
        for i in range(gpus)
    ]
    document.update(cases=[result], backend="cuda", command=["mgpu", "copy", "--format", "json"])
    size = part["bytes"] * gpus
    result["case"].update(gpus=list(range(gpus)), gpu_count=gpus, split=gpus, size_bytes=size)
    result.update(samples=samples, samples_stored=samples, bytes_copied=size, bytes_moved=2 * size)
    return document


def fill(document, node, factors, noise):
    """One node's names and times; factors are those of its GPUs."""
    host = f"node{node:04}"
    document["host"]["name"] = host
    result = document["cases"][0]
    for i, (device, part, factor) in enumerate(zip(document["devices"], result["per_device"], factors)):
        device["uuid"] = f"GPU-{node:04x}{i:04x}-0000-4000-8000-{node * len(factors) + i:012x}"
        device["pci"] = f"00000000:{0x10 + 8 * i:02X}:00.0"
        middle = 2e6 * factor * noise.gauss(1, 0.01)
        part.update(device_ns=round(middle, 1), device_min_ns=round(0.99 * middle, 1),
                    device_max_ns=round(1.02 * middle, 1), event_samples=10,
                    rate=2 * part["bytes"] * 1e9 / middle)
    slowest = max(part["device_ns"] for part in result["per_device"])
    times = [round(slowest * noise.gauss(1.02, 0.005), 1) for _ in range(result["samples"])]
    result["samples_ns"] = times
    ordered = sorted(times)
    middle = ordered[len(ordered) // 2]
    result["summary"].update(min=ordered[0], median=middle, mean=sum(times) / len(times), max=ordered[-1])
    return host


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("template", type=pathlib.Path, help="a result of mgpu copy --format json")
    parser.add_argument("folder", type=pathlib.Path, help="where the files go")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=8, help="of each node")
    parser.add_argument("--samples", type=int, default=200, help="of each node")
    options = parser.parse_args()
    if options.nodes * options.gpus < len(SLOW):
        parser.error(f"a fleet has at least {len(SLOW)} GPUs")

    noise = random.Random(0)
    slow = dict(zip(noise.sample(range(options.nodes * options.gpus), len(SLOW)), SLOW))
    document = shape(json.loads(options.template.read_text(encoding="utf-8")), options.gpus, options.samples)
    options.folder.mkdir(parents=True, exist_ok=True)
    for node in range(options.nodes):
        first = node * options.gpus
        host = fill(document, node, [slow.get(first + i, 1) for i in range(options.gpus)], noise)
        # Indented as mgpu's own documents are, but for the lists, which it keeps on one line.
        (options.folder / f"{host}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for gpu, factor in sorted(slow.items()):
        print(f"node{gpu // options.gpus:04} GPU {gpu % options.gpus}: {factor:.2f} times as long")


if __name__ == "__main__":
    main()
