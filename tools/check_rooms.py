#!/usr/bin/env python3
"""Enforces the map of the rooms: which folder of src may include which.

    check_rooms.py [ROOT]

The map is read from the spillway_room(NAME DEPS ...) and spillway_room_map(NAME DEPS ...) lines of CMakeLists.txt and
cmake/*.cmake. Also: every folder of src is on the map, the map has no circle, every header has #pragma once, every
quoted include names a file, and <mpi.h> is included only where MPI is spoken."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from source_text import code_of, files_under

ALL_FOLDERS = ("src", "include", "examples", "bench", "tests", "tools")
MPI_FOLDERS = ("src/mpi/", "src/interpose/", "examples/", "tests/faults/", "tests/mpi/", "bench/")
# src/<room> of the public C API; any room may include it.
PUBLIC = "spillway"

_ROOM = re.compile(r"^\s*spillway_room(?:_map)?\s*\(\s*(\w+)([^)]*)\)", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def read_map(root: Path) -> dict[str, list[str]]:
    """Room -> the rooms it may include, itself left out."""
    rooms: dict[str, list[str]] = {}
    for path in [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))]:
        text = re.sub(r"#.*", "", path.read_text()) if path.exists() else ""
        for match in _ROOM.finditer(text):
            words = match[2].split()
            start = words.index("DEPS") + 1 if "DEPS" in words else len(words)
            end = words.index("LINK", start) if "LINK" in words[start:] else len(words)
            rooms[match[1]] = words[start:end]
    return rooms


def circle_in(rooms: dict[str, list[str]]) -> list[str] | None:
    """A room that reaches itself, as the way it takes; None when there is none."""
    done: set[str] = set()

    def visit(room: str, way: list[str]) -> list[str] | None:
        if room in way:
            return way[way.index(room):] + [room]
        if room in done:
            return None
        for next_room in rooms.get(room, []):
            found = visit(next_room, way + [room])
            if found:
                return found
        done.add(room)
        return None

    return next((found for room in rooms if (found := visit(room, []))), None)


def check_map(root: Path, rooms: dict[str, list[str]]) -> list[str]:
    problems = []
    folders = {path.name for path in (root / "src").glob("*") if path.is_dir() and any(path.iterdir())}
    for folder in sorted(folders - rooms.keys()):
        problems.append(f"src/{folder}: not on the map: add spillway_room({folder} DEPS ...) to CMakeLists.txt")
    for room, needs in rooms.items():
        for need in needs:
            if need not in rooms:
                problems.append(f"CMakeLists.txt: {room} needs {need}, which is no room")
    circle = circle_in(rooms)
    if circle:
        problems.append(f"CMakeLists.txt: the rooms go in a circle: {' -> '.join(circle)}")
    return problems


def check_include(root: Path, path: Path, room: str | None, target: str, rooms: dict[str, list[str]]) -> str | None:
    """What is wrong with a quoted include of `target` in `path`, which lies in `room` (None: not in src)."""
    beside, in_src, public = path.parent / target, root / "src" / target, root / "include" / target
    if room is None:
        return None if any(p.is_file() for p in (beside, in_src, public)) else f'"{target}" is nowhere'
    if public.is_file() and target.split("/")[0] == PUBLIC:
        return None
    if not in_src.is_file():
        return f'"{target}" is not a file of src; includes are written from src, as "{room}/..."'
    other = target.split("/")[0]
    if other != room and other not in rooms.get(room, []):
        allowed = ", ".join(rooms.get(room, [])) or "none"
        return f'"{target}": {room} may not include {other} (it may: {allowed})'
    return None


def check_file(root: Path, path: Path, rooms: dict[str, list[str]]) -> list[str]:
    name = path.relative_to(root).as_posix()
    room = name.split("/")[1] if name.startswith("src/") and name.count("/") > 1 else None
    code, problems = code_of(path.read_text()), []
    if path.suffix == ".h" and not re.search(r"^#pragma once$", code, re.MULTILINE):
        problems.append(f"{name}:1: a header without #pragma once")
    for match in _INCLUDE.finditer(code):
        where = f"{name}:{code.count(chr(10), 0, match.start()) + 1}"
        if match[2] == "mpi.h" and not name.startswith(MPI_FOLDERS):
            problems.append(f"{where}: mpi.h may be included only in {', '.join(MPI_FOLDERS)}")
        elif match[1] == '"':
            problem = check_include(root, path, room, match[2], rooms)
            if problem:
                problems.append(f"{where}: {problem}")
    return problems


def check(root: Path) -> tuple[list[str], int]:
    """All problems, and how many files were looked at."""
    rooms = read_map(root)
    problems = check_map(root, rooms)
    files = files_under(root, *ALL_FOLDERS)
    for path in files:
        problems += check_file(root, path, rooms)
    return problems, len(files)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).parents[1]).resolve()
    problems, count = check(root)
    for problem in problems:
        print(problem)
    print(f"rooms: {count} files, {len(problems)} problems")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
