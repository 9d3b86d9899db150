"""Jobs of examples/jacobi.c under Spillway that are killed, and what they leave behind."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import launch  # noqa: E402
from launch import Mpi  # noqa: E402

GRID = 320
SNAPSHOT_BYTES = GRID * GRID * 8
SNAPSHOTS = 14
EVERY = 40  # iterations per snapshot: the program computes for some milliseconds between two
LIMIT_S = 20
POLL_S = 0.002


class Failed(Exception):
    """The job, or what it left, is not as it should be."""


def wait_until(condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {limit_s} s")
        time.sleep(POLL_S)


def jacobi(mpi: Mpi, ranks: int, output: Path, files: str = "one", *more: str) -> list[str]:
    return mpi.command(ranks, mpi.binary("jacobi"), "--grid", str(GRID), "--iterations", str(SNAPSHOTS * EVERY), "--every",
                       str(EVERY), "--files", files, "--output", output, *more)


def reference(folder: Path) -> bytes:
    """All snapshots, by the MPI alone. With one sweep per iteration every MPI and number of ranks gives these bytes."""
    mpi = Mpi.named("mpich")
    outcome = launch.run(jacobi(mpi, 2, folder / "reference"), mpi.environment(2), LIMIT_S)
    if outcome.status != 0:
        raise Failed(f"the program does not run without Spillway:\n{outcome.output}")
    data = (folder / "reference").read_bytes()
    if len(data) != SNAPSHOTS * SNAPSHOT_BYTES:
        raise Failed(f"the program wrote {len(data)} bytes, not {SNAPSHOTS * SNAPSHOT_BYTES}")
    return data


def processes(wanted: Callable[[int], bool]) -> list[int]:
    def matches(pid: int) -> bool:
        try:
            return wanted(pid)
        except OSError:
            return False  # gone meanwhile

    return [int(name) for name in os.listdir("/proc") if name.isdigit() and matches(int(name))]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True)
class How:
    """How a job runs and is killed."""

    mpi: str = "mpich"
    ranks: int = 3
    files: str = "one"
    options: tuple[str, ...] = ()  # of spillway run
    victim: str = "ranks"  # or one, launcher, everything


@dataclass
class Job:
    """One run under `spillway run`, with journals and logs of its own."""

    how: How
    output: Path  # as the program names it
    kept: Path  # where these bytes can be seen at once: the same, or behind the slow file system
    folder: Path = field(init=False)
    shm: Path = field(init=False)
    process: subprocess.Popen = field(init=False)

    def __enter__(self) -> Job:
        # Short: the MPIs keep sockets below TMPDIR.
        self.folder = Path(tempfile.mkdtemp(prefix="sw-crash-", dir="/tmp"))
        self.shm = Path(tempfile.mkdtemp(prefix="sw-crash-", dir="/dev/shm"))
        self.mpi = Mpi.named(self.how.mpi)
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "process"):
            launch.stop(self.process)
        for pid in self.rank_pids():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.shm, ignore_errors=True)

    # --- running ---

    def start(self) -> None:
        command = [str(launch.spillway()), "run", "--shm-dir", str(self.shm), *self.how.options, "--",
                   *jacobi(self.mpi, self.how.ranks, self.output, self.how.files, "--log", str(self.folder / "log"))]
        environment = {**self.mpi.environment(self.how.ranks), "TMPDIR": str(self.folder)}
        with open(self.folder / "transcript", "w") as transcript:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=transcript,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def transcript(self) -> str:
        return (self.folder / "transcript").read_text(errors="replace")

    def rank_pids(self) -> list[int]:
        binary, output = str(self.mpi.binary("jacobi")), str(self.output).encode()
        return processes(lambda pid: os.readlink(f"/proc/{pid}/exe") == binary and output in
                         Path(f"/proc/{pid}/cmdline").read_bytes())

    def phases(self) -> list[tuple[str, int]]:
        """The phase, with its snapshot, that each rank ended last."""
        last = []
        for rank in range(self.how.ranks):
            lines = []
            log = self.folder / f"log.{rank}"
            if log.exists():
                lines = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
            entry = lines[-1] if len(lines) > 1 else {"phase": "start", "snapshot": -1}
            last.append((entry["phase"], entry["snapshot"]))
        return last

    def returned(self) -> int:
        """How many snapshots every rank has written. A rank logs one after a barrier that follows the write."""
        done = 0
        for phase, snapshot in self.phases():
            done = max(done, snapshot + 1 if phase == "io" else snapshot)
        return min(done, SNAPSHOTS)

    def where(self) -> str:
        """In what the ranks were when they were stopped."""
        phase, snapshot = self.phases()[0]
        if phase == "finalize":
            return "after the end"
        if phase == "start" or (phase, snapshot) == ("io", -1):
            return "at the start" if phase == "start" else "computing"
        if phase == "compute":
            return "in a write"
        last = SNAPSHOTS if self.how.files == "one" else SNAPSHOTS - 1
        return "in MPI_Finalize" if snapshot >= last else "computing"

    def wait_for(self, snapshots: int) -> None:
        wait_until(lambda: self.returned() >= snapshots or self.process.poll() is not None, f"snapshot {snapshots}")

    def wait_for_place(self, place: str) -> None:
        """Until rank 0 has been there for a while."""
        def stays() -> bool:
            before = self.phases()
            time.sleep(20 * POLL_S)
            return self.where() == place and self.phases() == before

        wait_until(lambda: self.process.poll() is not None or stays(), place)

    # --- the end ---

    def kill(self, chance: random.Random) -> None:
        ranks = self.rank_pids()
        launcher = processes(lambda pid: parent(pid) == self.process.pid)
        victims = {"ranks": ranks, "one": [chance.choice(ranks)] if ranks else [], "launcher": launcher,
                   "everything": [self.process.pid, *launcher, *ranks]}[self.how.victim]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def wait_for_the_end(self) -> None:
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.how}: the launcher does not end\n{self.transcript()}") from None
        # Not when they seem gone: a killed process lives until the file system has answered its drain.
        wait_until(lambda: ", running: " not in self.spillway("status").stdout, f"{self.how}: the end of the ranks")

    # --- recovery ---

    def spillway(self, command: str, *options: str) -> subprocess.CompletedProcess:
        return subprocess.run([launch.spillway(), command, "--shm-dir", self.shm, *options], capture_output=True,
                              text=True, cwd="/", timeout=LIMIT_S, check=False)

    def recover(self, *options: str) -> subprocess.CompletedProcess:
        return self.spillway("recover", *options)

    def recover_killed(self, after_s: float) -> bool:
        """A recovery that is killed after a time; whether it was still at work."""
        with subprocess.Popen([launch.spillway(), "recover", "--shm-dir", self.shm], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, cwd="/") as recovery:
            try:
                recovery.wait(after_s)
            except subprocess.TimeoutExpired:
                recovery.kill()
            return recovery.wait() == -signal.SIGKILL

    def left(self) -> list[str]:
        """What is in shared memory: names with sizes and times."""
        return [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in sorted(self.shm.rglob("*"))]

    def name(self) -> str:
        return next(self.shm.glob("spillway-*/*")).name

    def written_bytes(self, expected: bytes) -> int:
        """Checks every snapshot that had been written; returns how many bytes that was."""
        done = self.returned()
        for number in range(done):
            wanted = expected[number * SNAPSHOT_BYTES:(number + 1) * SNAPSHOT_BYTES]
            if self.how.files == "one":
                with open(self.kept, "rb") as file:
                    file.seek(number * SNAPSHOT_BYTES)
                    got = file.read(SNAPSHOT_BYTES)
            else:
                got = Path(f"{self.kept}.{number:04}").read_bytes()
            if got != wanted:
                at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), len(got))
                raise Failed(f"{self.how}: snapshot {number} of the {done} that were written differs from byte {at} on "
                             f"({len(got)} of {len(wanted)} bytes are there)\n{self.transcript()}")
        return done * SNAPSHOT_BYTES


def recovered_bytes(output: str) -> float:
    """What a recovery says it has written."""
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    return sum(float(number) * units[unit] for number, unit in re.findall(r": ([\d.]+) (\w+) written", output))
