#!/usr/bin/env python3
# spillway-test: examples, about 60 s
"""examples/jacobi.c and bench/abt.c write what they should, byte for byte, on the MPI alone and under Spillway.

The oracle is the same relaxation in plain Python. With one sweep per iteration the result does not depend on how the
grid is cut, so every number of ranks and every MPI must give its bytes."""

from __future__ import annotations

import array
import itertools
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import launch  # noqa: E402
from launch import Mpi  # noqa: E402

GRID, EVERY, SNAPSHOTS = 53, 2, 3
RANKS = (1, 3, 4)
MODES = ("alone", "none", "memory")  # without Spillway, or the stage
MASK = (1 << 64) - 1


def initial_value(cell: int) -> float:
    """As in jacobi.c: the first 53 bits of a mixed 64-bit integer."""
    x = (cell + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return ((x ^ (x >> 31)) >> 11) / float(1 << 53)


def relaxed(grid: list[list[float]]) -> list[list[float]]:
    def at(i: int, j: int) -> float:
        return grid[i][j] if 0 <= i < GRID and 0 <= j < GRID else 0.0

    return [[0.25 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1)) for j in range(GRID)]
            for i in range(GRID)]


def oracle() -> list[bytes]:
    """The snapshots."""
    grid = [[initial_value(i * GRID + j) for j in range(GRID)] for i in range(GRID)]
    snapshots = []
    for iteration in range(1, EVERY * SNAPSHOTS + 1):
        grid = relaxed(grid)
        if iteration % EVERY == 0:
            snapshots.append(b"".join(array.array("d", row).tobytes() for row in grid))
    return snapshots


class Examples(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="spillway-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, mpi: str, ranks: int, mode: str, program: str, *options: str) -> str:
        """Its output; it must succeed."""
        found = Mpi.named(mpi)
        command = found.command(ranks, found.binary(program), *options)
        if mode != "alone":
            command = [str(launch.spillway()), "run", "--stage", mode, "--", *command]
        outcome = launch.run(command, found.environment(ranks), 120, cwd=self.folder)
        self.assertEqual(outcome.status, 0, outcome.output)
        return outcome.output

    def jacobi(self, mpi: str, ranks: int, mode: str, *options: str) -> str:
        return self.run_program(mpi, ranks, mode, "jacobi", "--grid", str(GRID), "--iterations",
                                str(EVERY * SNAPSHOTS), "--every", str(EVERY), "--output", "out", "--check", *options)

    def test_jacobi_writes_the_bytes_of_the_oracle(self) -> None:
        expected = b"".join(oracle())
        (self.folder / "out").write_bytes(b"old" * len(expected))  # longer: the program must cut it
        for mpi, ranks, mode in itertools.product(launch.NAMES, RANKS, MODES):
            with self.subTest(mpi=mpi, ranks=ranks, mode=mode):
                output = self.jacobi(mpi, ranks, mode)
                self.assertIn(f"check: 0 of {SNAPSHOTS * ranks} blocks differ", output)
                self.assertEqual((self.folder / "out").read_bytes(), expected)
            (self.folder / "out").unlink(missing_ok=True)

    def test_jacobi_with_a_file_for_each_snapshot(self) -> None:
        for mode in MODES:
            with self.subTest(mode=mode):
                self.jacobi("mpich", 3, mode, "--files", "each")
                for number, snapshot in enumerate(oracle()):
                    self.assertEqual((self.folder / f"out.{number:04}").read_bytes(), snapshot)
                    (self.folder / f"out.{number:04}").unlink()

    def test_an_error_of_the_file_system_ends_the_program_and_names_the_call(self) -> None:
        os.symlink("/dev/full", self.folder / "out")
        found = Mpi.named("mpich")
        command = found.command(1, found.binary("jacobi"), "--grid", "8", "--iterations", "1", "--every", "1", "--check",
                                "--output", "out")
        outcome = launch.run(command, found.environment(1), 120, cwd=self.folder)
        self.assertNotEqual(outcome.status, 0, outcome.output)
        self.assertIn("jacobi: MPI_File_", outcome.output)

    def test_abt_reads_back_what_it_wrote(self) -> None:
        for mpi, mode in itertools.product(launch.NAMES, MODES):
            with self.subTest(mpi=mpi, mode=mode):
                output = self.run_program(mpi, 4, mode, "abt", "--mib", "1", "--calls", "3", "--think", "0",
                                          "--distribution", "blocks", "--output", "out", "--check")
                self.assertIn('"checked": true, "wrong_ints": 0', output)
                self.assertEqual((self.folder / "out").stat().st_size, 3 * 4 << 20)

    def test_bad_options_end_with_status_2_and_write_nothing(self) -> None:
        for program, options, expected in (("jacobi", ["--grid", "0"], "--grid 0: must be a whole number"),
                                           ("jacobi", ["--files", "two"], "--files two: must be one or each"),
                                           ("jacobi", ["--speed", "9"], "--speed: unknown option"),
                                           ("abt", ["--distribution", "cyclic"], "conforming or blocks"),
                                           ("abt", ["--mib", "x"], "a number from 1 to 1024")):
            with self.subTest(program=program, options=options):
                found = Mpi.named("mpich")
                outcome = launch.run(found.command(2, found.binary(program), *options), found.environment(2), 60,
                                     cwd=self.folder)
                self.assertEqual(outcome.status, 2, outcome.output)
                self.assertEqual(outcome.output.count(expected), 1, outcome.output)
                self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
