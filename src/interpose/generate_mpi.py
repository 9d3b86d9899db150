#!/usr/bin/env python3
"""Makes the exported MPI symbols from mpi_functions.txt.

usage: generate_mpi.py TABLE OUTPUT
"""

import re
import sys
from pathlib import Path

HEADER = """// Made by generate_mpi.py from mpi_functions.txt. Do not edit.
#include "interpose/special.h"

using spillway::interpose::guarded;
using spillway::interpose::next;
using spillway::mpi::find_handle;
namespace calls = spillway::mpi::calls;
namespace special = spillway::interpose::special;

extern "C" {
"""

FORMS = {"": ("int", "MPI_Aint"), "_c": ("MPI_Count", "MPI_Count")}


def parse(text: str):
    """Yields (by_hand, return type, name, parameters) for each line."""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"(! )?(\w+) (MPI_\w+)\((.*)\)", line)
        if match is None:
            sys.exit(f"mpi_functions.txt:{number}: not understood: {line}")
        yield bool(match[1]), match[2], match[3], match[4]


def definition(by_hand: bool, returns: str, name: str, parameters: str, suffix: str) -> str:
    count, extent = FORMS[suffix]
    parameters = parameters.replace("COUNT ", f"{count} ").replace("EXTENT ", f"{extent} ")
    arguments = [] if parameters == "void" else [re.search(r"(\w+)$", part)[1] for part in parameters.split(",")]
    symbol = name + suffix
    signature = f"{returns} {symbol}({parameters})"
    if by_hand:
        body = f"  return special::{name}({', '.join(arguments)});\n"
    else:
        call = name.removeprefix("MPI_File_")
        rest = ", ".join(["*handle", *arguments[1:]])
        body = (
            f"  if (auto* handle = find_handle({arguments[0]})) return guarded([&] {{ return calls::{call}({rest}); }});\n"
            f'  static const auto below = next<{returns} (*)({", ".join(types(parameters))})>("{symbol}");\n'
            f"  return below != nullptr ? below({', '.join(arguments)}) : MPI_ERR_FILE;\n"
        )
    return (
        f"SPILLWAY_EXPORT {signature} {{\n{body}}}\n"
        f'SPILLWAY_EXPORT {returns} P{symbol}({parameters}) __attribute__((alias("{symbol}")));\n\n'
    )


def types(parameters: str) -> list[str]:
    return [re.sub(r"\s*\w+$", "", part.strip()) for part in parameters.split(",")]


def main() -> None:
    table, output = map(Path, sys.argv[1:])
    text = HEADER
    for by_hand, returns, name, parameters in parse(table.read_text()):
        suffixes = ["", "_c"] if "COUNT " in parameters or "EXTENT " in parameters else [""]
        for suffix in suffixes:
            text += definition(by_hand, returns, name, parameters, suffix)
    output.write_text(text + "}  // extern \"C\"\n")


if __name__ == "__main__":
    main()
