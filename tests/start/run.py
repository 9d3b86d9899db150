#!/usr/bin/env python3
# spillway-test: start, about 25 s
"""Where Spillway cannot start, the program runs as without it and one line says why; shared memory that is too small
or full costs speed, never the program. Real programs, real MPIs, and shared memory of all sizes (a mounted tmpfs)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import launch  # noqa: E402
from launch import Mpi  # noqa: E402
from run import PIECE_BYTES, block  # noqa: E402  (tests/faults/run.py)

LIMIT_S = 60
PIECES = 2000
WITHOUT = "the program runs without Spillway"
STEPS = "open:x write write sync single close open:x write close open:y write close"


@contextlib.contextmanager
def tmpfs(options: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sw-start-") as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True,
                                 check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


class StartTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="spillway-start-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, mpi: str, steps: str, pieces: int = PIECES) -> list[str]:
        return [str(Mpi.named(mpi).binary("steps")), str(self.folder / "out"), str(self.folder / "results"), "none", str(pieces), *steps.split()]

    def spillway(self, mpi: str, ranks: int, options: list[str], steps: str = STEPS,
                 variables: dict[str, str] | None = None) -> launch.Outcome:
        found = Mpi.named(mpi)
        command = [str(launch.spillway()), "run", *options, "--", *found.command(ranks, *self.program(mpi, steps))]
        return launch.run(command, {**found.environment(ranks), **(variables or {})}, LIMIT_S, cwd=self.folder)

    def preloaded(self, mpi: str, ranks: int, script: str, steps: str = STEPS) -> launch.Outcome:
        """Without `spillway run`: a shell in each rank runs `script`, with RANK set, before it becomes the program."""
        found = Mpi.named(mpi)
        library = launch.BUILD / "lib" / f"libspillway-{mpi}.so"
        shell = (f"RANK=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}; {script}; export LD_PRELOAD={library}; "
                 f"exec {' '.join(self.program(mpi, steps))}")
        return launch.run(found.command(ranks, "sh", "-c", shell), found.environment(ranks), LIMIT_S, cwd=self.folder)

    def expect_right(self, ranks: int, outcome: launch.Outcome) -> None:
        self.assertEqual(outcome.status, 0, outcome.output)
        results = [line.split() for line in self.noted()]
        self.assertEqual([line[0] for line in results], [step.partition(":")[0] for step in STEPS.split()] + ["end"])
        self.assertEqual({name for line in results for name in line[1:]}, {"SUCCESS"}, outcome.output)
        self.assertEqual((self.folder / "out.x").read_bytes(), b"".join(block(ranks, PIECES, n) for n in range(3)))
        self.assertEqual((self.folder / "out.y").read_bytes(), block(ranks, PIECES, 0))
        for name in ("x", "y"):
            (self.folder / f"out.{name}").unlink()

    def noted(self) -> list[str]:
        return (self.folder / "results").read_text().splitlines()

    def reasons(self, outcome: launch.Outcome) -> list[str]:
        return [line for line in outcome.output.splitlines() if WITHOUT in line]


class SharedMemory(StartTest):
    def test_every_size(self) -> None:
        ran_without = ran_with = 0
        for number, size in enumerate(("4k", "16k", "64k", "200k", "700k", "1m", "2m", "3m", "6m", "9m", "14m", "20m",
                                       "30m", "50m")):
            mpi, ranks = launch.NAMES[number % 2], (3, 1, 2)[number % 3]
            for options in ([], ["--stage", "none"]):
                with self.subTest(size=size, mpi=mpi, ranks=ranks, options=options), tmpfs(f"size={size}") as shm:
                    outcome = self.spillway(mpi, ranks, ["--shm-dir", str(shm), "--memory", "64MiB", "--drain-bytes", "1MiB",
                                                         "--cycle-bytes", "1MiB", *options])
                    self.expect_right(ranks, outcome)
                    reasons = self.reasons(outcome)
                    self.assertLessEqual(len(reasons), 1, outcome.output)
                    ran_without += len(reasons)
                    ran_with += "spillway: wrote" in outcome.output
                    self.assertEqual(bool(reasons), "spillway: wrote" not in outcome.output, outcome.output)
                    self.assertEqual([str(path) for path in shm.rglob("*")], [], outcome.output)
        self.assertGreater(ran_without, 4)
        self.assertGreater(ran_with, 4)

    def test_no_files_to_be_had(self) -> None:
        for inodes in range(2, 9):
            with self.subTest(inodes=inodes), tmpfs(f"size=64m,nr_inodes={inodes}") as shm:
                outcome = self.spillway("mpich", 3, ["--shm-dir", str(shm)])
                self.expect_right(3, outcome)
                self.assertLessEqual(len(self.reasons(outcome)), 1, outcome.output)
                self.assertEqual([str(path) for path in shm.rglob("*")], [], outcome.output)

    def test_a_directory_that_only_the_ranks_find_wanting(self) -> None:
        for mpi in launch.NAMES:
            with self.subTest(mpi=mpi):
                outcome = self.preloaded(mpi, 3, "export SPILLWAY_SHM_DIR=/no/such/directory")
                self.expect_right(3, outcome)
                self.assertEqual(len(self.reasons(outcome)), 1, outcome.output)
                self.assertIn("/no/such/directory", self.reasons(outcome)[0])


class OneRank(StartTest):
    """Rank 1 of 3 cannot start: the others find out and do without as well."""

    def check(self, script: str, *parts: str) -> None:
        for mpi in launch.NAMES:
            with self.subTest(mpi=mpi, script=script):
                outcome = self.preloaded(mpi, 3, f"if [ $RANK = 1 ]; then {script}; fi")
                self.expect_right(3, outcome)
                reasons = self.reasons(outcome)
                self.assertEqual(len(reasons), 1, outcome.output)
                for part in parts:
                    self.assertIn(part, reasons[0])

    def test_its_directory(self) -> None:
        self.check("export SPILLWAY_SHM_DIR=/no/such/directory", "/no/such/directory")

    def test_its_settings(self) -> None:
        self.check("export SPILLWAY_MEMORY=much", "SPILLWAY_MEMORY: 'much'", "accepted: auto, or a size")
        self.check("export SPILLWAY_MEMROY=1GiB", "unknown variable SPILLWAY_MEMROY", "did you mean 'SPILLWAY_MEMORY'?")

    def test_its_address_space_and_files(self) -> None:
        self.check("ulimit -v 3000000", "mapping ")


class Hints(StartTest):
    def test_a_hint_that_is_not_accepted_is_ignored_and_shown(self) -> None:
        for mpi in launch.NAMES:
            for key, value, accepted in (("spillway_memory", "2PiB", "auto, or a size from 0 to 1TiB"),
                                         ("spillway_close", "never", "deferred, drained"),
                                         ("cb_buffer_size", "lots", ""), ("cb_nodes", "-3", ""),
                                         ("romio_cb_write", "perhaps", ""), ("spillway_stagee", "memory", "there is no such hint")):
                with self.subTest(mpi=mpi, key=key):
                    outcome = self.spillway(mpi, 2, [], f"hint:{key}={value} open:x write show:{key} close")
                    self.assertEqual(outcome.status, 0, outcome.output)
                    warnings = [line for line in outcome.output.splitlines() if key in line]
                    self.assertEqual(len(warnings), 1, outcome.output)
                    self.assertIn(f"'{value}'" if key != "spillway_stagee" else "spillway_stage", warnings[0])
                    self.assertIn(accepted, warnings[0])
                    self.assertTrue(any(line.startswith(f"shown {key}=") for line in self.noted()))
                    self.assertNotIn(f"shown {key}={value}", self.noted())


class Refused(StartTest):
    """By `spillway run`, with the real MPIs: exit code 2, one line, the program not started."""

    def refused(self, *parts: str, mpi: str = "mpich", options: tuple[str, ...] = (), program: list[str] | None = None,
                variables: dict[str, str] | None = None) -> None:
        found = Mpi.named(mpi)
        command = [str(launch.spillway()), "run", *options, "--",
                   *found.command(2, *(program or self.program(mpi, "open:x write close")))]
        outcome = launch.run(command, {**found.environment(2), **(variables or {})}, LIMIT_S, cwd=self.folder)
        self.assertEqual(outcome.status, 2, outcome.output)
        self.assertEqual(len(outcome.output.splitlines()), 1, outcome.output)
        for part in parts:
            self.assertIn(part, outcome.output)
        self.assertEqual(os.listdir(self.folder), [])

    def test_refusals(self) -> None:
        self.refused("mixed MPIs", program=self.program("openmpi", "open:x"))
        self.refused("mixed MPIs", mpi="openmpi", program=self.program("mpich", "open:x"))
        self.refused("there is no program ./absent", program=["./absent"])
        self.refused("--memory: 'x'", "accepted: auto, or a size from 0 to 1TiB", options=("--memory", "x"))
        self.refused("SPILLWAY_CLOSE: 'x'", "accepted: deferred, drained", variables={"SPILLWAY_CLOSE": "x"})
        with tmpfs("size=1m,ro") as shm:
            self.refused(f"--shm-dir: '{shm}'", "Read-only file system", options=("--shm-dir", str(shm)))


if __name__ == "__main__":
    unittest.main()
