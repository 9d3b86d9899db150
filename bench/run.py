#!/usr/bin/env python3
"""The benchmarks, one per figure of a paper.

    ./dev bench NAME [OPTION]...      (NAME --help lists the options)"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import abt  # noqa: E402

BENCHES = {"abt": (abt.main, "collective write throughput (active buffering, figure 2)")}


def main(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "--help"
    if name in BENCHES:
        return BENCHES[name][0](arguments[1:])
    known = "\n".join(f"  {bench:<8} {what}" for bench, (_, what) in BENCHES.items())
    if name in ("-h", "--help", "help"):
        print(f"usage: ./dev bench NAME [OPTION]...\n{known}")
        return 0
    print(f"./dev bench: there is no benchmark {name}; there are\n{known}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
