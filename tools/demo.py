#!/usr/bin/env python3
"""Shows what Spillway does: the same Jacobi program writes the same snapshots to the same slow file system, once
through its MPI's own MPI-IO and once under Spillway. Prints the times, compares the files, draws where the time went.

The file system is slowfs with a limit on its bandwidth. A short calibration measures the computation of this machine
and sets the limit so that writing one snapshot takes 0.75 of the computation between two."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import launch
import picture
import slowmount
from launch import BUILD, Missing, Mpi
from slowmount import SlowFs

SKIPPED = 77
GRID = 2048  # 32 MiB a snapshot
SWEEPS = 4
DRAIN_PER_COMPUTE = 0.75
LIMIT_S = 600  # of one run of the program
MPI_IO_NAMES = {"mpich": "MPICH's own MPI-IO", "openmpi": "Open MPI's own MPI-IO"}


class Failed(Exception):
    """The demo cannot go on; the text says why."""


@dataclass(frozen=True)
class Plan:
    """What both runs do."""

    mpi: Mpi
    ranks: int
    snapshots: int
    every: int  # iterations per snapshot
    bandwidth: int  # bytes/s

    @property
    def bytes(self) -> int:
        return self.snapshots * GRID * GRID * 8

    def program(self, output: Path, log: Path) -> list[str]:
        options = ["--grid", GRID, "--sweeps", SWEEPS, "--iterations", self.snapshots * self.every, "--every",
                   self.every, "--output", output, "--log", log]
        return self.mpi.command(self.ranks, self.mpi.binary("jacobi"), *map(str, options))


@dataclass(frozen=True)
class Times:
    """What one run took, in seconds; all but wall_s are the program's own measurements."""

    run_s: float  # from the end of MPI_Init to the end of MPI_Finalize
    compute_s: float
    visible_io_s: float  # run_s - compute_s
    io_calls_s: float  # of visible_io_s: in MPI_File calls
    finalize_s: float  # of visible_io_s: in MPI_Finalize
    wall_s: float  # the whole command, with its start


def parse_times(output: str, wall_s: float) -> Times:
    """From what jacobi printed. Raises Failed when a line is missing."""
    found = [re.search(pattern, output, re.MULTILINE) for pattern in (
        r"^run time\s+([\d.]+) s", r"^compute time\s+([\d.]+) s",
        r"^visible I/O\s+([\d.]+) s\s+\(([\d.]+) s in MPI_File calls, ([\d.]+) s in MPI_Finalize")]
    if not all(found):
        raise Failed(f"the program did not print its times:\n{output}")
    numbers = [float(number) for match in found for number in match.groups()]
    return Times(*numbers, wall_s)


# ---- running --------------------------------------------------------------------------------------------------------


class Progress:
    """A line that is rewritten on a terminal, and printed now and then elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._live, self._printed = out, out.isatty(), time.monotonic()

    def show(self, text: str) -> None:
        if self._live:
            self._out.write(f"\r\033[K{text}")
        elif time.monotonic() - self._printed >= 10:
            self._out.write(f"{text}\n")
            self._printed = time.monotonic()
        self._out.flush()

    def end(self, text: str) -> None:
        self._out.write(("\r\033[K" if self._live else "") + f"{text}\n")
        self._out.flush()


def snapshots_in(log: Path) -> int:
    """How many snapshots rank 0 has written, as far as its log says."""
    try:
        return sum('"io"' in line and '"snapshot":-1' not in line for line in log.read_text().splitlines())
    except OSError:
        return 0


def bar(done: float, width: int = 24) -> str:
    full = min(width, int(done * width + 0.5))
    return "#" * full + "." * (width - full)


def watch(command: list[str], environment: dict[str, str], label: str, plan: Plan, fs: SlowFs, log: Path,
          transcript: Path) -> float:
    """Runs the program with a progress line; returns how long the command took. Raises Failed when it fails."""
    progress = Progress(sys.stdout)
    start = time.monotonic()
    with open(transcript, "w") as text, subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.STDOUT,
            start_new_session=True) as process:
        try:
            while process.poll() is None:
                seconds = time.monotonic() - start
                if seconds > LIMIT_S:
                    raise Failed(f"{label}: not finished after {LIMIT_S} s")
                done, stored = min(snapshots_in(log.with_name(log.name + ".0")), plan.snapshots), fs.bytes_written()
                progress.show(f"  {label:<20} {seconds:5.1f} s  [{bar(done / plan.snapshots)}] snapshot {done:2}/"
                              f"{plan.snapshots}, {stored >> 20:4}/{plan.bytes >> 20} MiB in the file system")
                time.sleep(0.1)
        finally:
            launch.stop(process)
    seconds = time.monotonic() - start
    progress.end(f"  {label:<20} {seconds:5.1f} s  [{bar(1)}] {plan.snapshots} snapshots, "
                 f"{fs.bytes_written() >> 20} MiB")
    if process.returncode != 0:
        raise Failed(f"{label}: exit status {process.returncode}; its output ({transcript}) ends with\n"
                     + "\n".join(transcript.read_text(errors="replace").splitlines()[-20:]))
    return seconds


def measure_iteration(mpi: Mpi, ranks: int) -> float:
    """Seconds of one iteration on this machine now: a first guess, then a run of about 2 s."""
    seconds, iterations = 0.0, 10
    for target_s in (0.2, 2.0):
        options = ["--grid", GRID, "--sweeps", SWEEPS, "--iterations", iterations, "--every", 0]
        outcome = launch.run(mpi.command(ranks, mpi.binary("jacobi"), *map(str, options)), mpi.environment(ranks), 120)
        if outcome.status != 0:
            raise Failed(f"the calibration failed ({outcome.status}):\n{outcome.output}")
        seconds = parse_times(outcome.output, outcome.seconds).compute_s / iterations
        if target_s == 0.2:
            iterations = max(10, round(2.0 / seconds))
    return seconds


def make_plan(mpi: Mpi, ranks: int, seconds: float) -> Plan:
    iteration_s = measure_iteration(mpi, ranks)
    snapshots = max(8, min(24, round(seconds)))
    every = max(1, round(seconds / snapshots / iteration_s))
    drain_s = DRAIN_PER_COMPUTE * every * iteration_s
    return Plan(mpi, ranks, snapshots, every, round(GRID * GRID * 8 / drain_s))


def same_bytes(a: Path, b: Path, expected: int) -> bool:
    """Both files are `expected` bytes long and equal."""
    if a.stat().st_size != expected or b.stat().st_size != expected:
        return False
    with open(a, "rb") as left, open(b, "rb") as right:
        while chunk := left.read(8 << 20):
            if right.read(len(chunk)) != chunk:
                return False
    return True


# ---- what came out --------------------------------------------------------------------------------------------------


def json_lines(path: Path) -> list[dict]:
    """All whole lines; a process that was stopped may leave a piece of one at the end."""
    records = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def read_run(title: str, note: str, log: Path, ranks: int, trace: Path | None) -> picture.Run:
    """The timeline of one run from the program's log and, with `trace`, what Spillway drained behind it."""
    logs = [[r for r in json_lines(log.with_name(f"{log.name}.{rank}")) if "phase" in r] for rank in range(ranks)]
    start = min(record["t0"] for records in logs for record in records)
    end = max(record["t1"] for records in logs for record in records)
    rows = []
    for records in logs:
        row = picture.Rank()
        for r in records:
            (row.compute if r["phase"] == "compute" else row.visible).append(
                ((r["t0"] - start) / 1e9, (r["t1"] - start) / 1e9))
        rows.append(row)
    for path in sorted(trace.glob("trace-*.jsonl")) if trace else []:
        records = json_lines(path)
        if records and records[0].get("spillway_trace") == 1 and 0 <= records[0]["rank"] < ranks:
            rows[records[0]["rank"]].background += [((r["t0"] - start) / 1e9, (r["t1"] - start) / 1e9)
                                                    for r in records[1:] if r.get("what") == "drain"]
    return picture.Run(title, note, (end - start) / 1e9, rows)


def table(plan: Plan, without: Times, under: Times, hidden: float, identical: bool) -> str:
    def row(name: str, left: str, right: str) -> str:
        return f"  {name:<22}{left:>22}{right:>20}"

    mib = f"{plan.bytes / 2**20:.0f} MiB"
    return "\n".join([
        row("", MPI_IO_NAMES[plan.mpi.name], "under Spillway"),
        row("run time", f"{without.run_s:.1f} s", f"{under.run_s:.1f} s"),
        row("compute time", f"{without.compute_s:.1f} s", f"{under.compute_s:.1f} s"),
        row("visible I/O time", f"{without.visible_io_s:.1f} s", f"{under.visible_io_s:.1f} s"),
        row("I/O time hidden", "", f"{hidden:.1f} %"),
        row("bytes written", mib, mib),
        row("files identical", "", "yes" if identical else "NO"),
    ])


def result(plan: Plan, without: Times, under: Times, identical: bool) -> dict:
    drain_s = plan.bytes / plan.bandwidth
    bound_s = max(without.compute_s, drain_s)
    return {
        "without": vars(without),
        "with": vars(under),
        "hidden_percent": round(100 * (1 - under.visible_io_s / without.visible_io_s), 2),
        "hidden_percent_is": "100 * (1 - with.visible_io_s / without.visible_io_s)",
        "identical": identical,
        "drain_s": round(drain_s, 3),
        "bound_s": round(bound_s, 3),
        "bound_s_is": "max(without.compute_s, drain_s), drain_s = bytes / bandwidth",
        "run_over_bound": round(under.run_s / bound_s, 4),
        "parameters": {
            "mpi": plan.mpi.name,
            "ranks": plan.ranks,
            "cores": launch.cores(),
            "grid": GRID,
            "sweeps": SWEEPS,
            "iterations": plan.snapshots * plan.every,
            "every": plan.every,
            "snapshots": plan.snapshots,
            "bytes": plan.bytes,
            "bandwidth_bytes_per_s": plan.bandwidth,
        },
    }


def headline(hidden_percent: float) -> str:
    if hidden_percent < 0:
        return "No I/O time hidden: the program waited longer than without Spillway"
    return f"{hidden_percent:.0f} % of the I/O time hidden behind the computation"


def run_both(mpi: Mpi, options: argparse.Namespace, out: Path) -> tuple[Plan, Times, Times]:
    """The two runs, on one file system; what they wrote is in out/backing afterwards."""
    spillway, trace = launch.spillway(), out / "trace"
    with slowmount.slowfs(out / "backing", out / "mount") as fs:
        print("Measuring how fast this machine computes ...", flush=True)
        plan = make_plan(mpi, options.ranks, options.seconds)
        fs.command(f"wbw {plan.bandwidth}")
        print(f"{plan.ranks} ranks on {launch.cores()} cores relax a grid of {GRID} x {GRID} doubles and write it "
              f"{plan.snapshots} times\n({plan.bytes >> 20} MiB) to a file system that takes "
              f"{plan.bandwidth / 1e6:.1f} MB/s:", flush=True)

        def run(name: str, label: str, *wrapper: str | Path) -> Times:
            fs.command("reset")
            log, transcript = out / f"{name}.log", out / f"{name}.txt"
            command = [*map(str, wrapper), *plan.program(fs.mount_point / f"{name}.out", log)]
            wall_s = watch(command, mpi.environment(plan.ranks), label, plan, fs, log, transcript)
            return parse_times(transcript.read_text(), wall_s)

        without = run("without", MPI_IO_NAMES[mpi.name])
        trace.mkdir()
        return plan, without, run("with", "under Spillway", spillway, "run", "--trace", trace, "--")


def draw(plan: Plan, without: Times, under: Times, hidden_percent: float, out: Path) -> str:
    def note(times: Times) -> str:
        return f"{times.run_s:.1f} s, of which {times.visible_io_s:.1f} s waiting for I/O"

    runs = [read_run(f"Without Spillway: {MPI_IO_NAMES[plan.mpi.name]}", note(without), out / "without.log", plan.ranks,
                     None),
            read_run("With Spillway: the same binary, the same bytes", note(under), out / "with.log", plan.ranks,
                     out / "trace")]
    return picture.timeline(headline(hidden_percent), (
        f"{plan.ranks} ranks on {launch.cores()} cores write {plan.snapshots} snapshots of {GRID * GRID * 8 >> 20} MiB "
        f"into one shared file on a file system of {plan.bandwidth / 1e6:.1f} MB/s"), runs)


def demonstrate(options: argparse.Namespace, out: Path) -> int:
    plan, without, under = run_both(Mpi.named(options.mpi), options, out)
    # Compared where slowfs kept them, after it has ended: nothing can still be on its way.
    backing = out / "backing"
    identical = same_bytes(backing / "without.out", backing / "with.out", plan.bytes)
    outcome = result(plan, without, under, identical)
    (out / "result.json").write_text(json.dumps(outcome, indent=2) + "\n")
    (out / "timeline.svg").write_text(draw(plan, without, under, outcome["hidden_percent"], out))

    for line in (out / "with.txt").read_text(errors="replace").splitlines():
        if line.startswith("spillway"):
            print(f"  {line}")
    print("\n" + table(plan, without, under, outcome["hidden_percent"], identical))
    print(f"\n  The run took {outcome['run_over_bound']:.2f} x the longer of computing alone "
          f"({without.compute_s:.1f} s) and writing alone ({outcome['drain_s']:.1f} s).")
    print(f"  Picture: {shown(out / 'timeline.svg')}   Figures: {shown(out / 'result.json')}")
    if not options.keep:
        shutil.rmtree(backing)
    return 0 if identical else 1


def shown(path: Path) -> Path:
    return path.relative_to(launch.ROOT) if path.is_relative_to(launch.ROOT) else path


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="ranks of the program (4)")
    parser.add_argument("--mpi", choices=launch.NAMES, default="mpich")
    parser.add_argument("--seconds", type=float, default=24, help="computation in each of the two runs (24)")
    parser.add_argument("--keep", action="store_true", help="leave the two output files in build/demo/backing")
    options = parser.parse_args(arguments)
    if not 1 <= options.ranks <= 64:
        parser.error(f"--ranks {options.ranks}: must be from 1 to 64")
    if not 1 <= options.seconds <= 300:
        parser.error(f"--seconds {options.seconds:g}: must be from 1 to 300")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    out = BUILD / "demo"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if reason := slowmount.why_not():
        print(f"demo: skipped: {reason}")
        return SKIPPED
    try:
        slowmount.unmount(out / "mount")
        if out.exists():
            shutil.rmtree(out)
        out.mkdir(parents=True)
        return demonstrate(options, out)
    except (Missing, Failed) as problem:
        print(f"\ndemo: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; nothing is left mounted or running", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
