"""What the checks of the source share: which files there are, and a C or C++ file without its comments and strings."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE_SUFFIXES = {".c", ".cc", ".h"}
SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__"}

# In the order they must be tried: what starts first in the text wins.
_TOKEN = re.compile(
    r'(?P<line>//(?:[^\n\\]|\\.|\\\n)*)'
    r'|(?P<block>/\*.*?\*/)'
    r'|(?P<raw>R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<separator>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))"
    r"|(?P<character>'(?:[^'\\\n]|\\.)+')",
    re.DOTALL)


def _blank(match: re.Match[str]) -> str:
    """As many lines as before, so that line numbers stay."""
    text, newlines = match.group(0), match.group(0).count("\n")
    if match.lastgroup == "separator":
        return text
    quote = text[-1] if text[0] in "\"'R" else " "
    return quote + "\n" * newlines + (quote if text[0] in "\"'R" else "")


def code_of(text: str) -> str:
    """The text with comments and the contents of strings removed; line numbers are the same. The paths of #include
    lines stay."""
    parts = []
    for piece in re.split(r'(?m)^([ \t]*#[ \t]*include[^\n]*)$', text):
        parts.append(re.sub(r'\s*//.*$', "", piece) if re.match(r'[ \t]*#[ \t]*include', piece)
                     else _TOKEN.sub(_blank, piece))
    return "".join(parts)


def files_under(root: Path, *folders: str) -> list[Path]:
    """The source files of those folders of `root`, sorted, without what is built."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root).parts
            if path.is_file() and path.suffix in SOURCE_SUFFIXES and not SKIPPED_FOLDERS.intersection(inside):
                found.append(path)
    return found
