#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pandas_rates.py FILE.jsonl...: moved GB/s of the median, sizes down, engines and numbers of GPUs across.

Rounds of one case are joined by their median."""
import json
import sys

import pandas


def documents(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.endswith("\n"))


cases = pandas.json_normalize(list(documents(sys.argv[1:])), "cases")
measured = cases[cases["outcome"] == "measured"]
rates = measured.pivot_table(
    values="rates.moved.median",
    index="case.size_bytes",
    columns=["case.engine", "case.gpu_count"],
    aggfunc="median",
)
print((rates / 1e9).round(1).to_string())
