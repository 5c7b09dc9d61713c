#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws the pictures of README.md again, from the results beside them in docs/pictures: those are of 2x NVIDIA H200.
# usage: scripts/pictures.sh
# Needs gnuplot, Graphviz, jq and Python's rich (apt: gnuplot-nox graphviz jq python3-rich). MGPU names the binary (build/release/mgpu).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../docs/pictures"

mgpu=${MGPU:-../../build/release/mgpu}
python=python3
if ! "$python" -c 'import rich' 2>/dev/null; then python=/usr/bin/python3; fi

"$mgpu" show issue-2615.jsonl -o issue-2615.svg >/dev/null
"$mgpu" show topology.json -o topology.svg >/dev/null
# For a reader of dark pages light and dark change places, and hues stay.
sed -i '0,/<\/title>/s//&<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.9) hue-rotate(180deg) } }<\/style>/' \
  issue-2615.svg topology.svg

# terminal NAME: a terminal that shows the command of NAME.jsonl and what it printed. The font is whatever the reader has,
# not one from the network; blanks at the ends of words count; and the name keeps the picture the same from run to run.
terminal() {
  {
    printf '\e[1m$\e[0m '
    jq -r '.command | join(" ")' "$1.jsonl" | sed 's/ -o .*//' | fold -s -w 76 | sed '$!s/ $/ \\/; 2,$s/^/    /'
    "$mgpu" show "$1.jsonl" --color always
  } | "$python" -c '
import re, sys
from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

console = Console(record=True, width=80, file=open("/dev/null", "w"), highlight=False)
console.print(Text.from_ansi(sys.stdin.read()), soft_wrap=True)
frame = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.S)
frame = frame.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, Consolas, monospace")
frame = frame.replace("-matrix\">", "-matrix\" xml:space=\"preserve\">")
console.save_svg(sys.argv[2], title="mgpu", code_format=frame, unique_id=sys.argv[1])
' "$1" "$1.svg"
}
terminal owner-wait
