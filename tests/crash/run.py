#!/usr/bin/env python3
# spillway-test: crash, about 40 s
"""kill -9 of a running program loses no write that had returned: `spillway recover` completes the files, byte for byte.

    run.py [--moments N] [--seed S] [unittest arguments]

The program is examples/jacobi.c under both MPIs; it logs every snapshot that all its ranks have written. The oracle is
the same program without Spillway. --moments: how many runs are killed at random moments (8); the seed is printed."""

from __future__ import annotations

import argparse
import collections
import os
import random
import sys
import tempfile
import unittest
from contextlib import ExitStack
from pathlib import Path

import jobs
from jobs import SNAPSHOTS, How, Job

import launch
import slowmount

OPTIONS = argparse.Namespace(moments=8, seed=0)
SLOW = "wbw 4M"  # the drain falls behind at once
PLAIN = "wbw 0"


class CrashTest(unittest.TestCase):
    """A slow file system and a plain one; a new output file for every job."""

    @classmethod
    def setUpClass(cls) -> None:
        if reason := slowmount.why_not():
            raise unittest.SkipTest(reason)
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        cls.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-crash-")))
        cls.backing = cls.folder / "backing"
        cls.fs = stack.enter_context(slowmount.slowfs(cls.backing, cls.folder / "mount"))
        cls.reference = jobs.reference(cls.folder)

    def setUp(self) -> None:
        self.fs.command("clear", SLOW)
        self.chance = random.Random(f"{OPTIONS.seed} {self.id()}")
        self.number = 0

    def job(self, how: How, slow: bool = True) -> Job:
        """Entered by the caller. Not started."""
        self.number += 1
        name = f"{self.id().rpartition('.')[2]}-{self.number}.out"
        if slow:
            return Job(how, self.fs.mount_point / name, self.backing / name)
        return Job(how, self.folder / name, self.folder / name)

    def kill_at(self, job: Job, snapshots: int, place: str | None = None) -> None:
        job.start()
        job.wait_for(snapshots)
        if place is not None:
            job.wait_for_place(place)
        job.kill(self.chance)
        job.wait_for_the_end()

    def assert_recovers(self, job: Job) -> str:
        """A recovery succeeds, leaves nothing in shared memory, and every written snapshot is there. What it printed."""
        result = job.recover()
        self.assertEqual((result.returncode, result.stderr), (0, ""), job.transcript())
        self.assertEqual(list(job.shm.rglob("*")), [])
        job.written_bytes(self.reference)
        return result.stdout


class RandomMoments(CrashTest):
    def how(self) -> tuple[How, bool, int]:
        """How a job runs, whether its file system is slow, and how many snapshots it writes before it is killed."""
        chance = self.chance
        slow = chance.random() < 0.75
        options = ["--close", chance.choice(("deferred", "deferred", "drained"))]
        options += chance.choice(((), (), ("--memory", "512KiB", "--drain-bytes", "128KiB"), ("--algorithm", "individual")))
        how = How(launch.NAMES[self.moment % 2], chance.choice((1, 2, 3, 4)), chance.choice(("one", "each")), tuple(options),
                  chance.choice(("ranks", "ranks", "ranks", "one", "launcher", "everything")))
        return how, slow, chance.randint(0, SNAPSHOTS)

    def test_random_moments(self) -> None:
        places: collections.Counter = collections.Counter()
        victims: collections.Counter = collections.Counter()
        written = recovered = interrupted = 0
        for self.moment in range(OPTIONS.moments):
            how, slow, snapshots = self.how()
            self.fs.command(SLOW)
            with self.subTest(moment=self.moment, how=how, slow=slow, snapshots=snapshots), self.job(how, slow) as job:
                job.start()
                job.wait_for(snapshots)
                try:
                    job.process.wait(self.chance.random() * 0.05)  # somewhere between two snapshots
                except Exception as expired:
                    self.assertIn("timed out", str(expired))
                job.kill(self.chance)
                job.wait_for_the_end()
                places[job.where()] += 1
                victims[how.victim] += 1
                while self.chance.random() < 0.4 and job.recover_killed(self.chance.random() * 0.3):
                    interrupted += 1
                self.fs.command(PLAIN)
                recovered += jobs.recovered_bytes(self.assert_recovers(job))
                written += job.written_bytes(self.reference)
        print(f"crash: {OPTIONS.moments} random moments, seed {OPTIONS.seed}: killed "
              f"{', '.join(f'{count} {place}' for place, count in sorted(places.items()))}; victims "
              f"{', '.join(f'{count} {victim}' for victim, count in sorted(victims.items()))}; "
              f"{written / 2**20:.0f} MiB had been written and are exact, {recovered / 2**20:.0f} MiB of them by recovery, "
              f"which was killed {interrupted} times")


class ChosenPlaces(CrashTest):
    def test_in_a_write_that_waits_for_space(self) -> None:
        how = How(options=("--memory", "256KiB", "--drain-bytes", "64KiB"))
        for mpi in launch.NAMES:
            with self.subTest(mpi=mpi), self.job(How(mpi, 3, "one", how.options)) as job:
                self.fs.command("wbw 1M")
                self.kill_at(job, 1, "in a write")
                self.assertEqual(job.where(), "in a write")
                self.fs.command(PLAIN)
                self.assertIn("written", self.assert_recovers(job))

    def test_while_the_drain_is_behind_after_deferred_closes(self) -> None:
        for mpi, files in zip(launch.NAMES, ("each", "one")):
            with self.subTest(mpi=mpi, files=files), self.job(How(mpi, 4, files)) as job:
                self.fs.command("wbw 1M")
                self.kill_at(job, SNAPSHOTS, "in MPI_Finalize")
                self.assertEqual(job.where(), "in MPI_Finalize")
                self.assertIn("recover", job.transcript())  # the end of the run says what to do
                self.fs.command(PLAIN)
                self.assertGreater(jobs.recovered_bytes(self.assert_recovers(job)), job.returned() * 1000)

    def test_the_death_of_one_rank_or_of_the_launcher(self) -> None:
        for mpi in launch.NAMES:
            for victim in ("one", "launcher", "everything"):
                with self.subTest(mpi=mpi, victim=victim), self.job(How(mpi, 3, "one", (), victim)) as job:
                    self.kill_at(job, 5)
                    self.fs.command(PLAIN)
                    self.assert_recovers(job)

    def test_an_output_that_was_named_relative_to_another_directory(self) -> None:
        with self.job(How()) as job:
            where, job.output = job.output.parent, Path(job.output.name)
            here = os.getcwd()
            os.chdir(where)
            try:
                self.kill_at(job, 4)
            finally:
                os.chdir(here)
            self.fs.command(PLAIN)
            self.assertIn("written", self.assert_recovers(job))


class Recovery(CrashTest):
    def killed(self, stack: ExitStack, mpi: str = "mpich", files: str = "one") -> Job:
        """A job with much pending."""
        job = stack.enter_context(self.job(How(mpi, 3, files)))
        self.fs.command("wbw 1M")
        self.kill_at(job, 6)
        return job

    def test_a_dry_run_touches_nothing(self) -> None:
        with ExitStack() as stack:
            job = self.killed(stack)
            before = job.left(), job.kept.read_bytes(), job.kept.stat().st_mtime_ns
            result = job.recover("--dry-run")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("would be written", result.stdout)
            self.assertEqual((job.left(), job.kept.read_bytes(), job.kept.stat().st_mtime_ns), before)
            self.fs.command(PLAIN)
            self.assert_recovers(job)

    def test_a_recovery_that_is_killed_again_and_again(self) -> None:
        with ExitStack() as stack:
            job = self.killed(stack, "openmpi", "each")
            self.fs.command("wbw 6M")
            killed = sum(job.recover_killed(0.05 + 0.1 * self.chance.random()) for _ in range(5))
            self.assertGreater(killed, 0)
            self.fs.command(PLAIN)
            self.assert_recovers(job)
            self.assertIn("nothing to recover", job.recover().stdout)

    def test_two_recoveries_at_once(self) -> None:
        with ExitStack() as stack:
            job = self.killed(stack)
            self.fs.command("wbw 3M", "lat all 1000")
            with launch.subprocess.Popen([launch.spillway(), "recover", "--shm-dir", job.shm],
                                         stdout=launch.subprocess.DEVNULL) as first:
                jobs.wait_until(lambda: first.poll() is not None or "being joined or recovered" in
                                job.recover(job.name()).stderr, "the second recovery is refused")
            self.fs.command(PLAIN)
            if list(job.shm.rglob("*")):
                self.assert_recovers(job)
            job.written_bytes(self.reference)

    def test_a_running_job_is_left_alone(self) -> None:
        with self.job(How(ranks=2)) as job:
            job.start()
            job.wait_for(3)
            named = job.recover(job.name())
            self.assertEqual(named.returncode, 1, named.stdout)
            self.assertIn("still runs", named.stderr)
            everything = job.recover()
            self.assertEqual((everything.returncode, everything.stderr), (0, ""))
            self.assertIn(f"job {job.name()}: still runs", everything.stdout)
            self.assertIn(", running: ", job.spillway("status").stdout)
            self.fs.command(PLAIN)
            job.wait_for_the_end()
            self.assertEqual(job.process.returncode, 0, job.transcript())
            self.assertEqual(job.returned(), SNAPSHOTS)
            job.written_bytes(self.reference)

    def test_a_file_that_was_renamed_and_replaced(self) -> None:
        with ExitStack() as stack:
            job = self.killed(stack)
            self.fs.command(PLAIN)
            moved = job.output.with_suffix(".moved")
            job.output.rename(moved)
            self.check_kept(job, "No such file or directory")
            job.output.write_bytes(b"somebody else's")
            self.check_kept(job, "is another one now")
            self.assertEqual(job.kept.read_bytes(), b"somebody else's")
            moved.rename(job.output)
            self.assert_recovers(job)

    def test_a_file_that_was_deleted(self) -> None:
        with ExitStack() as stack:
            job = self.killed(stack)
            self.fs.command(PLAIN)
            job.output.unlink()
            self.check_kept(job, "No such file or directory")
            result = job.recover("--salvage")
            self.assertIn("not recovered: bytes ", result.stderr)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertEqual(list(job.shm.rglob("*")), [])
            self.assertFalse(job.kept.exists())

    def check_kept(self, job: Job, *parts: str) -> None:
        """A recovery that cannot do its work says so, and keeps the journals."""
        left = job.left()
        result = job.recover()
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for part in (*parts, str(job.output), "its journals are kept"):
            self.assertIn(part, result.stderr)
        self.assertNotIn("complete, journals removed", result.stdout)
        self.assertEqual([line.split()[:2] for line in job.left()], [line.split()[:2] for line in left])
        status = job.spillway("status")
        self.assertRegex(status.stdout, r"not running: [\d.]+ \w+ pending in 1 file\n")

    def test_a_file_system_that_is_full_or_read_only(self) -> None:
        for fault, text in (("fail write ENOSPC -1", "No space left on device"), ("fail write EDQUOT -1 2", "quota"),
                            ("fail open EROFS -1", "Read-only file system"), ("fail fsync EIO -1", "Input/output error")):
            with self.subTest(fault=fault), ExitStack() as stack:
                job = self.killed(stack)
                self.fs.command(PLAIN, fault)
                self.check_kept(job, text)
                self.fs.command("clear")
                self.assert_recovers(job)


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--moments", type=int, default=int(os.environ.get("CRASH_MOMENTS", "8")))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    print(f"crash: seed {OPTIONS.seed}", flush=True)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
