"""Small made-up source trees for the tests of the checks."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path


class MadeUpTree(unittest.TestCase):
    def tree(self, files: dict[str, str]) -> Path:
        """A folder with these files; it goes with the test."""
        folder = tempfile.TemporaryDirectory(prefix="spillway-tree-")
        self.addCleanup(folder.cleanup)
        for name, text in files.items():
            path = Path(folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Path(folder.name)

    def assert_problem(self, problems: list[str], *parts: str) -> None:
        """Exactly one problem holds all the parts."""
        self.assertEqual(sum(all(part in problem for part in parts) for problem in problems), 1, (parts, problems))
