#!/usr/bin/env python3
"""The style of the project as a test: what can be counted or searched for.

    check_tidy.py [ROOT]

| rule     | what it forbids                                                                       | where          |
|----------|---------------------------------------------------------------------------------------|----------------|
| lines    | a source of more than 500 lines, a header of more than 250                            | everywhere     |
| lock     | a lock or condition variable other than base::Mutex and base::CondVar                 | src but base   |
| exit     | ending the process: exit, _exit, abort, std::terminate ...                            | src but cli    |
| stdout   | writing to standard output: std::cout, printf, puts, fmt::print without stderr        | src but cli    |
| todo     | TODO, FIXME, XXX or HACK without the number of an issue, as in TODO(#12)              | everywhere     |
| readme   | a folder of src without README.md, or with one of more than 40 lines                  | src            |
| link     | a relative link to a file or folder that is not there                                 | every *.md     |

tools/tidy_exceptions.txt lists what is let through: `RULE PATH` a line, and for `lines` the most it may have. The list
only shrinks: an exception that nothing needs any more is a problem too."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from source_text import SKIPPED_FOLDERS, code_of, files_under

C_FOLDERS = ("src", "include", "examples", "bench", "tests", "tools")
SCRIPT_FOLDERS = ("bench", "tests", "tools", "python")
SOURCE_LINES_MAX, HEADER_LINES_MAX, README_LINES_MAX = 500, 250, 40
EXCEPTIONS = "tools/tidy_exceptions.txt"

_CALL = r"(?<![\w.>])(?:std::|::)?"
# rule -> (pattern over code without comments and strings, folders of src it does not hold for)
PATTERNS = {
    "lock": (re.compile(r"\bstd::(?:recursive_|timed_|shared_|recursive_timed_|shared_timed_)?mutex\b"
                        r"|\bstd::(?:lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable(?:_any)?)\b"
                        r"|\bpthread_(?:mutex|cond|rwlock|spin)_\w+"), ("src/base/",)),
    "exit": (re.compile(_CALL + r"(?:exit|_exit|_Exit|quick_exit|abort|terminate)\s*\("), ("src/cli/",)),
    "stdout": (re.compile(r"\bstd::(?:cout|wcout)\b|" + _CALL + r"(?:printf|vprintf|puts|putchar)\s*\("
                          r"|\b(?:fprintf|fputs|fputc|fwrite|fflush)\s*\([^;]*\bstdout\b"
                          r"|\b(?:fmt|std)::print(?:ln)?\s*\(\s*(?!stderr)|\bSTDOUT_FILENO\b"), ("src/cli/",)),
}
# Links and pictures, but not those inside code; web addresses and places in the same page are not looked at.
_MARKDOWN_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
_TODO = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")

Finding = tuple[str, str, int, str]  # rule, path, line, message


def count_lines(text: str) -> int:
    return len(text.splitlines())


def find_lines(name: str, text: str) -> list[Finding]:
    most, lines = (HEADER_LINES_MAX if name.endswith(".h") else SOURCE_LINES_MAX), count_lines(text)
    if lines <= most:
        return []
    return [("lines", name, lines, f"{lines} lines; at most {most}")]


def is_test(name: str) -> bool:
    """Unit tests lie beside the source: foo_test.cc, and test_foo.h for what they share."""
    file = name.rsplit("/", 1)[-1]
    return file.endswith("_test.cc") or file.startswith("test_")


def find_patterns(name: str, text: str) -> list[Finding]:
    if not name.startswith("src/"):
        return []
    code, found = code_of(text), []
    for rule, (pattern, exempt) in PATTERNS.items():
        if name.startswith(exempt) or is_test(name):
            continue
        for match in pattern.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            found.append((rule, name, line, f"{match[0].strip()} is not allowed here"))
    return found


def find_todos(name: str, text: str) -> list[Finding]:
    return [("todo", name, number, "a note of open work without the number of an issue, as in TODO(#12)")
            for number, line in enumerate(text.splitlines(), 1) if _TODO.search(line)]


def find_readmes(root: Path) -> list[Finding]:
    found: list[Finding] = []
    for folder in sorted(path for path in (root / "src").glob("*") if path.is_dir() and any(path.iterdir())):
        readme, name = folder / "README.md", f"src/{folder.name}/README.md"
        if not readme.is_file():
            found.append(("readme", name, 1, "missing: purpose, map, rules, tests of the folder"))
        elif (lines := count_lines(readme.read_text())) > README_LINES_MAX:
            found.append(("readme", name, lines, f"{lines} lines; at most {README_LINES_MAX}"))
    return found


def find_links(root: Path) -> list[Finding]:
    found: list[Finding] = []
    for path in sorted(root.rglob("*.md")):
        relative = path.relative_to(root)
        if SKIPPED_FOLDERS.intersection(relative.parts):
            continue
        text = _MARKDOWN_CODE.sub(lambda code: "\n" * code[0].count("\n"), path.read_text())
        for match in _LINK.finditer(text):
            if not (path.parent / match[1]).exists():
                line = text.count("\n", 0, match.start()) + 1
                found.append(("link", relative.as_posix(), line, f"{match[1]} is not there"))
    return found


def is_script(path: Path) -> bool:
    return path.suffix == ".py" or (path.suffix == "" and path.is_file() and path.read_bytes()[:2] == b"#!")


def scripts(root: Path) -> list[Path]:
    """Python files and extensionless scripts, ./dev among them."""
    found = [path for path in (root / "dev", root / ".ci" / "run") if path.is_file()]
    for folder in SCRIPT_FOLDERS:
        found += sorted(p for p in (root / folder).rglob("*") if "__pycache__" not in p.parts and is_script(p))
    return found


def find_all(root: Path) -> tuple[list[Finding], int]:
    """Everything the rules forbid, exceptions included, and how many files were looked at."""
    found, files = find_readmes(root) + find_links(root), files_under(root, *C_FOLDERS) + scripts(root)
    for path in files:
        name, text = path.relative_to(root).as_posix(), path.read_text()
        found += find_lines(name, text) + find_patterns(name, text)
        # These two files must spell what they search for.
        if name not in ("tools/check_tidy.py", "tools/tests/test_check_tidy.py"):
            found += find_todos(name, text)
    return found, len(files)


def read_exceptions(root: Path) -> dict[tuple[str, str], int]:
    """(rule, path) -> the most lines it may have, or 0."""
    exceptions: dict[tuple[str, str], int] = {}
    path = root / EXCEPTIONS
    for line in path.read_text().splitlines() if path.is_file() else []:
        words = line.split("#")[0].split()
        if words:
            exceptions[words[0], words[1]] = int(words[2]) if len(words) > 2 else 0
    return exceptions


def check(root: Path) -> tuple[list[str], int]:
    """All problems as text, and how many files were looked at."""
    exceptions, used = read_exceptions(root), set()
    found, count = find_all(root)
    problems = []
    lengths = defaultdict(int)
    for rule, name, line, message in found:
        allowed = exceptions.get((rule, name))
        if allowed is None or (rule == "lines" and line > allowed):
            problems.append(f"{name}:{line}: {rule}: {message}")
        if allowed is not None:
            used.add((rule, name))
            lengths[rule, name] = line
    for (rule, name), most in exceptions.items():
        if (rule, name) not in used:
            problems.append(f"{EXCEPTIONS}: '{rule} {name}' is not needed any more: remove it")
        elif rule == "lines" and lengths[rule, name] < most:
            problems.append(f"{EXCEPTIONS}: '{rule} {name} {most}' may shrink to {lengths[rule, name]}")
    return problems, count


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).parents[1]).resolve()
    problems, count = check(root)
    for problem in problems:
        print(problem)
    print(f"tidy: {count} files, {len(problems)} problems")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
