#!/usr/bin/env python3
"""Every header of src and include compiles alone, with clang: nobody has to know what to include before it.

    check_headers.py [ROOT] [--mpi PREFIX]

--mpi names the MPI whose mpi.h the headers of src/mpi and src/interpose are compiled with; without it they are left
out, which the summary says."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source_text import files_under

MPI_FOLDERS = ("src/mpi/", "src/interpose/")
FLAGS = ["-std=c++20", "-fsyntax-only", "-x", "c++", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra",
         "-Werror", "-Wno-pragma-once-outside-header"]


def compile_alone(root: Path, header: Path, extra: list[str]) -> str:
    """The compiler's complaints; empty when there are none."""
    # Twice: the second time must add nothing.
    source = f'#include "{header}"\n#include "{header}"\n'
    command = ["clang++", *FLAGS, f"-I{root / 'src'}", f"-I{root / 'include'}", *extra, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return done.stderr.strip() or f"clang++ ended with status {done.returncode}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--mpi", type=Path)
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    headers, left_out = [], 0
    for header in files_under(root, "src", "include"):
        if header.suffix != ".h":
            continue
        if header.relative_to(root).as_posix().startswith(MPI_FOLDERS) and not options.mpi:
            left_out += 1
        else:
            headers.append(header)
    extra = [f"-I{options.mpi / 'include'}"] if options.mpi else []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        complaints = [text for text in pool.map(lambda header: compile_alone(root, header, extra), headers) if text]
    for text in complaints:
        print(text)
    note = f", {left_out} left out: no --mpi" if left_out else ""
    print(f"headers: {len(headers)} compiled alone, {len(complaints)} problems{note}")
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
