"""./dev says what is wrong, and installs what is missing with one call of apt-get or says which."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Dev(unittest.TestCase):
    def dev(self, *arguments: str, **stubs: str) -> subprocess.CompletedProcess:
        """Runs ./dev; `stubs` are commands it finds before the system's, as shell text; `_` in a name is `-`."""
        with tempfile.TemporaryDirectory(prefix="spillway-dev-") as folder:
            for name, text in stubs.items():
                stub = Path(folder) / name.replace("_", "-")
                stub.write_text(f"#!/bin/bash\n{text}\n")
                stub.chmod(0o755)
            environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
            return subprocess.run([ROOT / "dev", *arguments], env=environment, cwd="/", capture_output=True, text=True,
                                  check=False)

    def assert_refused(self, done: subprocess.CompletedProcess, *parts: str) -> None:
        self.assertEqual(done.returncode, 2, done)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_bad_arguments_are_named_with_what_is_accepted(self) -> None:
        self.assert_refused(self.dev("chek"), "chek", "demo, build, check, test, mpi, bench, fmt, help")
        self.assert_refused(self.dev("build", "fast"), "build", "'fast'")
        self.assert_refused(self.dev("check", "fast"), "check", "'fast'")
        self.assert_refused(self.dev("fmt", "--all"), "--all", "fmt --tidy")

    def test_help(self) -> None:
        for arguments in ((), ("help",), ("--help",)):
            done = self.dev(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("usage: ./dev COMMAND", done.stdout)

    def test_a_user_gets_the_line_to_run(self) -> None:
        done = self.dev("build", dpkg_query='echo "installed cmake"', id="echo 1000", apt_get="exit 9")
        self.assert_refused(done, "apt-get update && apt-get install -y --no-install-recommends ninja-build g++")
        self.assertNotIn(" cmake", done.stderr)

    def test_root_installs_only_what_is_missing_with_one_call(self) -> None:
        installed = 'shift 2; for name in "$@"; do [ "$name" = fuse3 ] || echo "installed $name"; done'
        done = self.dev("build", dpkg_query=installed, id="echo 0",
                        apt_get='echo "apt-get $*" >&2; [ "$1" = update ] || exit 9')
        self.assertEqual(done.returncode, 9)
        self.assertEqual(done.stderr.splitlines(),
                         ["apt-get update -qq", "apt-get install -y -qq --no-install-recommends fuse3"])

    def test_tests_are_listed(self) -> None:
        done = self.dev("test")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"rooms: .*\bbase\b")
        self.assertRegex(done.stdout, r"under tests/: .*\bslowfs\b")


if __name__ == "__main__":
    unittest.main()
