#!/usr/bin/env python3
# spillway-test: mpi, about 60 s
"""The MPI front door does what MPI-4.1 chapter 14 says, under real MPIs, from an unmodified program's point of view.

conformance.c runs its cases at several numbers of ranks, with bytes staged and not, with a buffer that is too small for
them; endings.c and threads.c are programs of their own because of how they begin or end. All of it also runs on the MPI
alone, which shows that a case asks for what MPI-IO does and not for what Spillway does; NATIVE names what the MPIs
themselves do otherwise, and why."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import launch  # noqa: E402
from launch import Mpi  # noqa: E402

RANKS = (1, 2, 3, 4, 7)
STAGES = ("none", "memory")
# Names that end in '#' are left to the MPI: handles.c.
MANAGED = "*[!#]"
LIMIT_S = 120

# Cases that an MPI alone does not pass, and what it does instead (MPICH 5.0.2 with ROMIO, Open MPI 5.0.11 with OMPIO).
NATIVE = {
    "mpich": {
        "collective.records": "writes through a view with gaps put memory's leftovers into gaps beyond the end of file",
        "consistency.random_steps": "the same",
        "datatypes.random_in_memory": "memory is overrun by types with pieces before their begin",
        "datatypes.degenerate": "crashes on types with parts without bytes",
        "error_handlers.user_function": "a call returns success after its error handler was called",
        "error_handlers.inherited": "the same; then an assertion fails for an error on the file",
        "error_handlers.calls_inside": "a call returns success after its error handler was called",
        "errors.open_bad_names": "rank 0's error code is given to the others, where it means nothing",
        "errors.create_exclusive": "the same",
        "errors.different_amodes": "contradictory modes are refused before the ranks agree; the others wait",
        "errors.read_only_files": "another class (MPI_ERR_IO) from write_shared and preallocate",
        "errors.write_only_files": "read_ordered succeeds and reads nothing",
        "errors.bad_arguments": "ranks that find a fault leave the others waiting",
        "errors.bad_views": "the same",
        "errors.one_bad_rank": "the same",
        "errors.different_values": "the same",
        "handles.external32_short_read": "counts and converts bytes that are not in the file",
        "nonblocking.among_others": "MPI_Test after MPI_Request_get_status ends the program",
        "pointers.short_reads": "a status has never been told that it was not cancelled",
        "pointers.ordered": "an end of file is counted as read by the shared pointer",
    },
    "openmpi": {
        "collective.overlapping": "a collective write may overtake the ranks that have returned from the one before",
        "collective.uneven": "the same",
        "datatypes.random_in_file": "refuses some legal arrays of MPI_Type_create_darray",
        "error_handlers.calls_inside": "MPI_ERR_OTHER for a seek to before the file",
        "error_handlers.inherited": "the same",
        "error_handlers.user_function": "the same",
        "errors.bad_arguments": "the same, and for negative offsets",
        "errors.bad_views": "accepts a negative displacement",
        "errors.different_amodes": "not compared; the ranks that were refused leave the others waiting",
        "errors.different_values": "MPI_ERR_OTHER; not compared everywhere",
        "errors.one_bad_rank": "MPI_ERR_OTHER for a negative offset; a rank that finds it leaves the others waiting",
        "errors.open_bad_names": "opens folders for reading",
        "errors.part_of_an_etype": "writes parts of etypes",
        "errors.read_only_files": "MPI_ERR_OTHER from set_size",
        "errors.write_only_files": "collective reads succeed and read nothing",
        "handles.external32_short_read": "does not come back",
        "handles.hints": "hands on values it does not accept, and refuses MPI_INFO_NULL",
        "handles.internal_datarep": "does not know it",
        "nonblocking.among_others": "does not come back",
        "nonblocking.every_start": "statuses of requests were never told that they are not cancelled",
        "nonblocking.split_mistakes": "crashes",
        "pointers.ordered": "MPI_SEEK_END of the shared pointer leaves the view's displacement out",
        "pointers.seeking": "MPI_SEEK_END counts the gaps of a view",
        "pointers.sequential": "the mode changes nothing",
        "pointers.short_reads": "collective reads count bytes that are not in the file",
        "sizes.preallocated": "preallocates by writing, over bytes of other ranks",
    },
}
# With more ranks than cores OMPIO needs minutes for what MPICH does in no time: the unmanaged half of this case.
OPENMPI_SLOW = "handles.managed_and_not"


class Conformance(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="spillway-mpi-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, mpi: str, ranks: int, stage: str | None, program: str, *options: str,
              settings: tuple[str, ...] = ()) -> launch.Outcome:
        """Runs a program in a folder of its own; stage None: without Spillway."""
        found = Mpi.named(mpi)
        command = found.command(ranks, found.binary(program), *options)
        if stage is not None:
            command = [str(launch.spillway()), "run", "--stage", stage, "--files", MANAGED, "--log-level", "error",
                       *settings, "--", *command]
        folder = tempfile.mkdtemp(dir=self.folder)
        self.files = Path(folder)
        return launch.run(command, found.environment(ranks), LIMIT_S, cwd=self.files)

    def expect_success(self, outcome: launch.Outcome) -> None:
        self.assertEqual(outcome.status, 0, outcome.output[-8000:])

    def conformance(self, mpi: str, ranks: int, stage: str | None, *cases: str, leave_out: tuple[str, ...] = (),
                    settings: tuple[str, ...] = ()) -> None:
        with self.subTest(mpi=mpi, ranks=ranks, stage=stage or "without Spillway", settings=settings):
            excepted = ("--except", ",".join(leave_out)) if leave_out else ()
            outcome = self.start(mpi, ranks, stage, "conformance", *excepted, *cases, settings=settings)
            self.expect_success(outcome)
            self.assertIn(" cases, 0 failed", outcome.output)

    def test_under_mpich(self) -> None:
        for ranks in RANKS:
            for stage in STAGES if ranks < 7 else ("memory",):
                self.conformance("mpich", ranks, stage)

    def test_under_openmpi(self) -> None:
        # Starting a job takes Open MPI more than a second: the larger ones in one way each.
        for ranks in RANKS:
            for stage in {4: ("none",), 7: ("memory",)}.get(ranks, STAGES):
                self.conformance("openmpi", ranks, stage, leave_out=(OPENMPI_SLOW,) if ranks > 1 else ())

    def test_the_cases_themselves_on_the_mpi_alone(self) -> None:
        # Not several ranks with Open MPI: some of what its collective calls do otherwise depends on who is first.
        for mpi, ranks in (("mpich", 1), ("mpich", 2), ("openmpi", 1)):
            self.conformance(mpi, ranks, None, leave_out=tuple(NATIVE[mpi]))

    def test_with_a_buffer_smaller_than_the_data(self) -> None:
        cases = ("collective", "consistency", "sizes", "arrivals", "nonblocking")
        for mpi, ranks in (("mpich", 4), ("openmpi", 3)):
            self.conformance(mpi, ranks, "memory", *cases, settings=("--memory", "256KiB"))

    def test_with_the_other_settings(self) -> None:
        for settings in (("--close", "drained"), ("--algorithm", "individual"), ("--algorithm", "two_phase")):
            self.conformance("mpich", 3, "memory", "views", "collective", "consistency", "arrivals", "sizes",
                             settings=settings)

    def test_threads(self) -> None:
        for mpi in launch.NAMES:
            for stage in (None, "none", "memory"):
                with self.subTest(mpi=mpi, stage=stage):
                    self.expect_success(self.start(mpi, 2, stage, "threads"))

    def check_ending(self, mpi: str, ranks: int, stage: str | None, way: str, statuses: tuple[int, ...] = (0,)) -> None:
        with self.subTest(mpi=mpi, ranks=ranks, stage=stage, way=way):
            outcome = self.start(mpi, ranks, stage, "endings", way)
            self.assertIn(outcome.status, statuses, outcome.output)
            self.assertNotIn("endings:", outcome.output)
            mebibyte = 1 << 20
            expected = b"".join(bytes([ord("a") + rank]) * mebibyte for rank in range(ranks))
            self.assertTrue((self.files / "endings.out").read_bytes() == expected, "endings.out has other bytes")

    def test_endings(self) -> None:
        for mpi in launch.NAMES:
            for way in ("open", "nonblocking", "double"):
                self.check_ending(mpi, 2, "memory", way)
            # A launcher does not like processes that end without MPI_Finalize; one rank at least is not killed for it.
            for way in ("exit", "return"):
                self.check_ending(mpi, 1, "memory", way, statuses=(0, 1))

    def test_sessions(self) -> None:
        # MPICH's own MPI-IO refuses to work without MPI_Init.
        for mpi in launch.NAMES:
            for stage in STAGES:
                self.check_ending(mpi, 2, stage, "session")

    def test_nothing_is_left_in_memory(self) -> None:
        before = {name for name in os.listdir("/dev/shm") if name.startswith("spillway")}
        self.check_ending("mpich", 2, "memory", "open")
        after = {name for name in os.listdir("/dev/shm") if name.startswith("spillway")}
        self.assertLessEqual(after, before)


if __name__ == "__main__":
    unittest.main()
