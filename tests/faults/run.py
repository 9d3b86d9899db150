#!/usr/bin/env python3
# spillway-test: faults, about 35 s
"""Faults of the file system below the drain: every rank gets the right error class from its next write, sync or close,
nobody hangs, and the bytes are not lost. tests/faults/steps.c carries out the calls; slowfs (tools/slowfs) injects."""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import launch  # noqa: E402
import slowmount  # noqa: E402
from launch import Mpi  # noqa: E402

PIECE_BYTES = 1000  # as in steps.c
LIMIT_S = 60
CLASSES = {"ENOSPC": "NO_SPACE", "EDQUOT": "QUOTA", "EIO": "IO"}
TINY = ("--memory", "256KiB", "--drain-bytes", "64KiB")


def block(ranks: int, pieces: int, number: int) -> bytes:
    """What all ranks write as one block."""
    counting = bytes(range(256)) * 5
    starts = ((rank * 31 + number * 17 + piece * 7) & 255 for piece in range(pieces) for rank in range(ranks))
    return b"".join(counting[start:start + PIECE_BYTES] for start in starts)


class FaultTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        if reason := slowmount.why_not():
            raise unittest.SkipTest(reason)
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        folder = cls.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-faults-")))
        cls.backing = folder / "backing"
        cls.fs = stack.enter_context(slowmount.slowfs(cls.backing, folder / "mount"))
        cls.shm = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-faults-", dir="/dev/shm")))

    def setUp(self) -> None:
        self.fs.command("clear", "reset", "wbw 0")

    def run_steps(self, mpi: str, ranks: int, options: tuple[str, ...], steps: str, pieces: int = 64) -> tuple[list[str], str]:
        """What it noted of its steps, and what was printed. The program must come to its own end."""
        found = Mpi.named(mpi)
        noted = self.folder / "results"
        command = [str(launch.spillway()), "run", "--shm-dir", str(self.shm), *options, "--",
                   *found.command(ranks, found.binary("steps"), self.fs.mount_point / "out", noted,
                                  self.fs.mount_point / ".slowfs-control", str(pieces), *steps.split())]
        outcome = launch.run(command, found.environment(ranks), LIMIT_S)
        self.assertEqual(outcome.status, 0, f"{command}\n{outcome.output}")
        results = noted.read_text().splitlines()
        self.assertEqual(results[-1:], ["end"], outcome.output)
        return results[:-1], outcome.output

    def expect(self, ranks: int, steps: str, results: list[str], said: str) -> None:
        """`steps` with the class that all ranks must have got from each: 'write=SUCCESS sync=IO'. 'sync=SUCCESS|IO': either,
        but all the same; 'single=SUCCESS/IO': each rank either."""
        wanted = []
        for step, result in itertools.zip_longest(steps.split(), results, fillvalue="="):
            name, classes = step.split("=")
            if "/" in classes:
                accepted = [" ".join([name, *each]) for each in itertools.product(classes.split("/"), repeat=ranks)]
            else:
                accepted = [" ".join([name] + [one] * ranks) for one in classes.split("|")]
            wanted.append(result if result in accepted else accepted[0])
        self.assertEqual(results, wanted, said)

    def expect_file(self, name: str, ranks: int, blocks: list[int], pieces: int = 64) -> None:
        data = (self.backing / f"out.{name}").read_bytes()
        size = ranks * pieces * PIECE_BYTES
        for number in blocks:
            self.assertEqual(data[number * size:(number + 1) * size], block(ranks, pieces, number), f"block {number}")

    def recover(self) -> subprocess.CompletedProcess:
        return self.spillway("recover")

    def spillway(self, command: str) -> subprocess.CompletedProcess:
        return subprocess.run([launch.spillway(), command, "--shm-dir", self.shm], capture_output=True, text=True,
                              cwd="/", timeout=LIMIT_S, check=False)

    def expect_nothing_left(self) -> None:
        self.assertEqual(list(self.shm.rglob("*")), [])


MATRIX = [(mpi, ranks, stage, close) for mpi, ranks, (stage, close) in itertools.product(
    launch.NAMES, (1, 2, 4), (("memory", "deferred"), ("memory", "drained"), ("none", "deferred")))]


class Delivery(FaultTest):
    def test_the_class_at_the_next_write_and_sync_and_close_and_success_after_the_fault(self) -> None:
        for mpi, ranks, stage, close in MATRIX:
            with self.subTest(mpi=mpi, ranks=ranks, stage=stage, close=close):
                steps, expected = [], []
                for error, name in CLASSES.items():
                    steps += [f"open:{error}", "write", "sync", f"tell:fail_write_{error}_-1", "write", "again"]
                    expected += ["open=SUCCESS", "write=SUCCESS", "sync=SUCCESS",
                                 "write=SUCCESS" if stage == "memory" else f"write={name}", f"again={name}"]
                    if stage == "memory":
                        steps += ["sync"]  # nothing has changed: the same again
                        expected += [f"sync={name}"]
                    # What another rank ran into after the last report is still to be heard of, once.
                    steps += ["tell:clear", "redo", "redo", "sync", "write", "close"]
                    expected += [f"redo=SUCCESS|{name}", "redo=SUCCESS", "sync=SUCCESS", "write=SUCCESS", "close=SUCCESS"]
                results, said = self.run_steps(mpi, ranks, ("--stage", stage, "--close", close), " ".join(steps))
                self.expect(ranks, " ".join(expected), results, said)
                for error in CLASSES:
                    self.expect_file(error, ranks, [0, 1, 2])
                self.expect_nothing_left()

    def test_the_class_at_close(self) -> None:
        for mpi, (error, name) in zip(launch.NAMES * 2, CLASSES.items()):
            with self.subTest(mpi=mpi, error=error):
                # Drained: close itself finds out. Deferred: it delivers what the drain has run into.
                results, said = self.run_steps(mpi, 3, ("--close", "drained"), f"open:close tell:fail_write_{error}_-1 "
                                               "write close tell:clear")
                self.expect(3, f"open=SUCCESS write=SUCCESS close={name}", results, said)
                self.expect_file("close", 3, [0])
                results, said = self.run_steps(mpi, 3, (), f"open:later tell:fail_write_{error}_-1 write again close "
                                               "tell:clear")
                self.expect(3, f"open=SUCCESS write=SUCCESS again={name} close={name}", results, said)
                self.expect_file("later", 3, [0])
                self.expect_nothing_left()

    def test_one_request_of_one_rank_fails(self) -> None:
        for mpi, ranks in itertools.product(launch.NAMES, (2, 4)):
            with self.subTest(mpi=mpi, ranks=ranks):
                results, said = self.run_steps(mpi, ranks, ("--drain-bytes", "64KiB"),
                                               "open:single tell:fail_write_EIO_1_2 write again redo sync close")
                self.expect(ranks, "open=SUCCESS write=SUCCESS|IO again=IO redo=SUCCESS sync=SUCCESS close=SUCCESS",
                            results, said)
                self.expect_file("single", ranks, [0])
                self.expect_nothing_left()

    def test_independent_writes(self) -> None:
        for mpi in launch.NAMES:
            with self.subTest(mpi=mpi):
                results, said = self.run_steps(mpi, 2, (), "open:alone tell:fail_write_ENOSPC_-1 single sync "
                                               "tell:clear sync redo single close")
                # A rank may be so late that the other's bytes have failed by then: it hears of it and has to write again.
                self.expect(2, "open=SUCCESS single=SUCCESS/NO_SPACE sync=NO_SPACE sync=SUCCESS redo=SUCCESS "
                               "single=SUCCESS close=SUCCESS", results, said)
                self.expect_file("alone", 2, [0, 1])

    def test_what_the_file_system_reports_only_at_fsync_or_close(self) -> None:
        # The bytes are gone: the file system had taken them. Nobody can mend that, but everyone must hear of it.
        results, said = self.run_steps("mpich", 2, (), "open:lost write sync tell:defer_ENOSPC_1 write sync")
        self.expect(2, "open=SUCCESS write=SUCCESS sync=SUCCESS write=SUCCESS sync=NO_SPACE", results, said)
        results, said = self.run_steps("mpich", 2, ("--close", "drained"), "open:gone tell:defer_EDQUOT_1 write close")
        self.expect(2, "open=SUCCESS write=SUCCESS close=QUOTA", results, said)
        self.assertRegex(said, r"; [12] errors?, first: .*[Qq]uota")


class Invisible(FaultTest):
    def test_short_writes_and_interruptions(self) -> None:
        for mpi, ranks, stage in (("mpich", 1, "memory"), ("mpich", 4, "none"), ("openmpi", 4, "memory"),
                                  ("openmpi", 2, "none")):
            with self.subTest(mpi=mpi, ranks=ranks, stage=stage):
                results, said = self.run_steps(mpi, ranks, ("--stage", stage), "open:short tell:short_write_9 "
                                               "tell:fail_write_EINTR_9 write write sync close")
                self.expect(ranks, "open=SUCCESS write=SUCCESS write=SUCCESS sync=SUCCESS close=SUCCESS", results, said)
                self.assertIn("; 0 errors", said)
                self.expect_file("short", ranks, [0, 1])
                self.assertGreaterEqual(self.faults_injected(), 2)
                self.fs.command("clear", "reset")

    def faults_injected(self) -> int:
        text = (self.fs.mount_point / ".slowfs-stats").read_text()
        return int(re.search(r"^faults_injected (\d+)", text, re.MULTILINE)[1])


class FullBuffer(FaultTest):
    """The buffer is smaller than one write, so the program waits for space that the fault keeps from coming."""

    def test_a_write_in_the_middle_of_which_nothing_can_be_drained_any_more(self) -> None:
        for mpi, (ranks, (error, name)), skip in itertools.product(launch.NAMES, zip((1, 2, 4), CLASSES.items()), (0, 3)):
            with self.subTest(mpi=mpi, ranks=ranks, error=error, skip=skip):
                results, said = self.run_steps(
                    mpi, ranks, TINY, f"open:full tell:fail_write_{error}_-1_{skip} write tell:clear redo redo sync close",
                    pieces=2000)
                self.expect(ranks, f"open=SUCCESS write={name} redo=SUCCESS|{name} redo=SUCCESS sync=SUCCESS close=SUCCESS",
                            results, said)
                self.expect_file("full", ranks, [0], pieces=2000)
                self.expect_nothing_left()


class TheEnd(FaultTest):
    def test_a_job_that_ends_with_the_error_pending(self) -> None:
        for mpi, close, (error, name) in zip(launch.NAMES * 2, ("deferred", "drained", "drained", "deferred"),
                                             (*CLASSES.items(), ("ENOSPC", "NO_SPACE"))):
            with self.subTest(mpi=mpi, close=close, error=error):
                self.fs.command("clear", "reset")
                results, said = self.run_steps(mpi, 3, ("--close", close),
                                               f"open:end write sync tell:fail_write_{error}_-1 write again close")
                self.expect(3, f"open=SUCCESS write=SUCCESS sync=SUCCESS write=SUCCESS again={name} close={name}", results,
                            said)
                self.assertRegex(said, r"spillway: wrote .*; \d+ errors?, first: .*; [\d.]+ \w+ are not in the file "
                                       r"system yet")
                job = re.search(rf"run `spillway recover --shm-dir {self.shm} (\S+)`", said)
                self.assertIsNotNone(job, said)
                status = self.spillway("status").stdout
                self.assertIn(f"job {job[1]}, not running: ", status)
                self.assertIn(f"{self.fs.mount_point}/out.end: ", status)
                again = self.recover()
                self.assertEqual(again.returncode, 1, again.stdout)
                self.fs.command("clear")
                result = self.recover()
                self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
                self.expect_file("end", 3, [0, 1])
                self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
