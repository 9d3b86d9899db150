#!/usr/bin/env python3
"""Starts MPI programs with the project's own MPICH and Open MPI, on any machine and as any user.

    launch.py [--mpi mpich|openmpi] N PROGRAM [ARGUMENT]...

As a module: Mpi says where an MPI is, how to start a program with it and in which environment; run() runs a command
under a time limit and leaves no process behind. DEV_BUILD, DEV_MPICH_ROOT and DEV_OPENMPI_ROOT in the environment stand
for build, build/mpi/mpich and build/mpi/openmpi; names that begin with SPILLWAY_ belong to Spillway itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("DEV_BUILD", ROOT / "build"))
SPILLWAY = BUILD / "bin" / "spillway"
NAMES = ("mpich", "openmpi")

# Root may start Open MPI, more ranks than cores may run, and ranks that wait give up their core.
_OPENMPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
# With more ranks than cores, MPICH's shared-memory path spins through whole time slices: a barrier of 4 ranks on 2
# cores takes 9 ms, and 13 us without it.
_MPICH_SHARED_CORES_ENVIRONMENT = {"MPIR_CVAR_NOLOCAL": "1"}


class Missing(Exception):
    """Something that ./dev build makes, or that must be installed, is not there. The text says what to do."""


def cores() -> int:
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Mpi:
    name: str
    root: Path

    @classmethod
    def named(cls, name: str) -> Mpi:
        """The project's own MPI of that name. Raises Missing."""
        if name not in NAMES:
            raise Missing(f"--mpi {name}: must be one of {', '.join(NAMES)}")
        root = Path(os.environ.get(f"DEV_{name.upper()}_ROOT") or BUILD / "mpi" / name)
        if not (root / "bin" / "mpiexec").exists():
            raise Missing(f"{root} has no bin/mpiexec: run ./dev build")
        return cls(name, root)

    @property
    def python(self) -> Path:
        """The interpreter with mpi4py and numpy for this MPI."""
        return self.root / "bin" / "python"

    def environment(self, ranks: int, share_cores: bool = True) -> dict[str, str]:
        """The environment for `ranks` ranks. `share_cores` false leaves MPICH's own settings when cores are few."""
        environment = dict(os.environ)
        if self.name == "openmpi":
            environment.update(_OPENMPI_ENVIRONMENT)
        elif share_cores and ranks > cores():
            environment.update(_MPICH_SHARED_CORES_ENVIRONMENT)
        return environment

    def command(self, ranks: int, *program: str | Path) -> list[str]:
        return [str(self.root / "bin" / "mpiexec"), "-n", str(ranks), *map(str, program)]

    def binary(self, program: str) -> Path:
        """build/bin/PROGRAM-MPI, one of the project's own MPI programs. Raises Missing."""
        path = BUILD / "bin" / f"{program}-{self.name}"
        if not path.exists():
            raise Missing(f"{path} is not there: run ./dev build")
        return path


def spillway() -> Path:
    """build/bin/spillway. Raises Missing."""
    if not SPILLWAY.exists():
        raise Missing(f"{SPILLWAY} is not there: run ./dev build")
    return SPILLWAY


def stop(process: subprocess.Popen, grace_s: float = 5) -> None:
    """Ends a process that was started as the leader of its own group, and what it started: first asked, then killed.
    mpiexec, when asked, ends its ranks itself."""
    for sign, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, grace_s)):
        if process.poll() is not None:
            break
        try:
            os.killpg(process.pid, sign)
            process.wait(wait_s)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


@dataclass(frozen=True)
class Outcome:
    status: int | None  # None: stopped at the time limit
    output: str  # both streams
    seconds: float


def run(command: list[str], environment: dict[str, str], limit_s: float, cwd: Path | None = None) -> Outcome:
    """Runs a command to its end or to the limit; its processes are gone afterwards."""
    start = time.monotonic()
    with subprocess.Popen(command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as process:
        status: int | None = None
        try:
            output, _ = process.communicate(timeout=limit_s)
            status = process.returncode
        except subprocess.TimeoutExpired:
            stop(process)
            output, _ = process.communicate()
        except BaseException:
            stop(process)
            raise
    return Outcome(status, output, time.monotonic() - start)


def main(arguments: list[str]) -> int:
    name = "mpich"
    if arguments[:1] == ["--mpi"]:
        name, arguments = (arguments[1] if len(arguments) > 1 else ""), arguments[2:]
    if arguments[:1] in (["-h"], ["--help"]):
        print("usage: ./dev mpi [--mpi mpich|openmpi] N PROGRAM [ARGUMENT]...")
        return 0
    if len(arguments) < 2 or not arguments[0].isdigit() or int(arguments[0]) == 0:
        seen = arguments[0] if arguments else "nothing"
        print(f"./dev mpi: expected the number of ranks and a program, not '{seen}'\n"
              "usage: ./dev mpi [--mpi mpich|openmpi] N PROGRAM [ARGUMENT]...", file=sys.stderr)
        return 2
    ranks, program = int(arguments[0]), arguments[1]
    if not shutil.which(program):
        print(f"./dev mpi: {program} is not there or cannot be executed", file=sys.stderr)
        return 2
    try:
        mpi = Mpi.named(name)
    except Missing as missing:
        print(f"./dev mpi: {missing}", file=sys.stderr)
        return 2
    command = mpi.command(ranks, *arguments[1:])
    os.execve(command[0], command, mpi.environment(ranks))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
