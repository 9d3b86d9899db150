#!/usr/bin/env python3
# spillway-test: mpi4py, about 150 s
"""Runs mpi4py's own I/O tests, from its PyPI source package, on 1, 2 and 4 ranks of each MPI: as it is, and under
Spillway without and with staging. What passes on the MPI alone must pass under Spillway.

    mpi4py.py [--mpi NAME]... [--ranks N]... [--stage none|memory]... [--fresh]

What passes on the MPI alone is kept in build/real and measured again only when a version changes, or with --fresh."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))

import launch  # noqa: E402
from launch import BUILD, Missing, Mpi  # noqa: E402

# All that use MPI.File.
MODULES = ("test_io", "test_file", "test_errhandler", "test_handle", "test_objmodel", "test_subclass", "test_cffi")
STOCK = "stock"
LIMIT_S = 900  # of one job. On two quiet cores the longest takes 17 s; where MPICH's waiting ranks have to share them
# with other work, minutes
OUT = BUILD / "real"
# From best to worst; a test counts as what it was on the rank where it went worst.
OUTCOMES = ("ok", "skip", "fail", "error", "hung", "not run")

Results = dict[str, tuple[str, str]]  # test -> outcome, why


@dataclass(frozen=True)
class Job:
    mpi: str
    ranks: int
    mode: str  # STOCK, or the stage

    def __str__(self) -> str:
        where = "alone" if self.mode == STOCK else f"under Spillway, --stage {self.mode}"
        return f"{self.mpi}, {self.ranks} rank{'s' * (self.ranks > 1)}, {where}"


@dataclass(frozen=True)
class Report:
    results: Results
    seconds: float
    complete: bool  # all ranks came to their end


# ---- the tests themselves -------------------------------------------------------------------------------------------


def version_in(mpi: Mpi) -> str:
    command = [str(mpi.python), "-c", "import mpi4py; print(mpi4py.__version__)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_folder(mpi: Mpi) -> Path:
    """The test folder of the source package of the installed version, downloaded once."""
    version = version_in(mpi)
    folder = OUT / f"mpi4py-{version}"
    if not (folder / "test" / "main.py").exists():
        print(f"Downloading the source of mpi4py {version}", flush=True)
        OUT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OUT) as download:
            command = [str(mpi.python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                       "--no-binary", "mpi4py", "--dest", download, f"mpi4py=={version}"]
            if subprocess.run(command, check=False).returncode != 0:
                raise Missing(f"the source package of mpi4py {version} could not be downloaded")
            with tarfile.open(next(Path(download).glob("*.tar.gz"))) as archive:
                archive.extractall(OUT, filter="data")
    return folder / "test"


# ---- running --------------------------------------------------------------------------------------------------------


def merge(ranks: list[list[dict]]) -> tuple[Results, bool]:
    """One outcome per test from what every rank recorded, and whether all ranks came to their end."""
    per_rank: list[Results] = []
    for records in ranks:
        results: Results = {}
        for record in records:
            if "test" in record:
                old = results.get(record["test"], ("hung", ""))
                # A test with several failing parts keeps the first; its last line never makes it better.
                if old[0] in ("hung", "ok", "skip"):
                    results[record["test"]] = (record["outcome"], record.get("why", ""))
        per_rank.append(results)
    merged: Results = {}
    for test in sorted({test for results in per_rank for test in results}):
        seen = [(results.get(test, ("not run", "")), rank) for rank, results in enumerate(per_rank)]
        (outcome, why), rank = max(seen, key=lambda item: OUTCOMES.index(item[0][0]))
        merged[test] = (outcome, f"rank {rank}: {why}" if outcome not in ("ok", "skip") else "")
    return merged, all(records and records[-1].get("end") for records in ranks)


def run_job(job: Job, tests: Path) -> Report:
    mpi = Mpi.named(job.mpi)
    folder = OUT / "logs" / f"{job.mpi}-{job.ranks}-{job.mode}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    includes = [word for module in MODULES for word in ("-i", module)]
    command = mpi.command(job.ranks, mpi.python, HERE / "mpi4py_ranks.py", tests, folder / "records", *includes)
    if job.mode != STOCK:
        command = [str(launch.spillway()), "run", "--stage", job.mode, "--", *command]
    outcome = launch.run(command, mpi.environment(job.ranks) | {"TMPDIR": str(folder / "tmp")}, LIMIT_S)
    (folder / "output.txt").write_text(outcome.output)
    shutil.rmtree(folder / "tmp", ignore_errors=True)
    ranks = []
    for rank in range(job.ranks):
        path = folder / f"records.{rank}"
        ranks.append([json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
                     if path.exists() else [])
    results, complete = merge(ranks)
    complete = complete and outcome.status is not None
    passed = sum(outcome == "ok" for outcome, _ in results.values())
    print(f"  {job}: {passed} of {len(results)} passed{'' if complete else ', did not come to its end'}, "
          f"{outcome.seconds:.0f} s", flush=True)
    return Report(results, outcome.seconds, complete)


class Places:
    """As many ranks at once as there are cores; a job with more ranks runs alone."""

    def __init__(self, places: int) -> None:
        self._places, self._free, self._change = places, places, threading.Condition()

    def run(self, job: Job, tests: Path) -> Report:
        need = min(job.ranks, self._places)
        with self._change:
            self._change.wait_for(lambda: self._free >= need)
            self._free -= need
        try:
            return run_job(job, tests)
        finally:
            with self._change:
                self._free += need
                self._change.notify_all()


def run_jobs(jobs: list[Job], tests: Path) -> dict[Job, Report]:
    """All of them, the biggest first."""
    order = sorted(jobs, key=lambda job: -job.ranks)
    places = Places(launch.cores())
    with ThreadPoolExecutor(max_workers=len(order) or 1) as pool:
        return dict(zip(order, pool.map(lambda job: places.run(job, tests), order)))


# ---- what the MPI alone does is remembered --------------------------------------------------------------------------


def stock_key(job: Job) -> str:
    """Changes when anything does that the outcome on the MPI alone depends on; empty when that is not known."""
    stamp = Mpi.named(job.mpi).root / "stamp"
    return f"{stamp.read_text().strip()} | {job} | {','.join(MODULES)}" if stamp.exists() else ""


def load_stock(jobs: list[Job]) -> dict[Job, Report]:
    path = OUT / "mpi4py-stock.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    found = {job: kept[key] for job in jobs if (key := stock_key(job)) in kept}
    return {job: Report({test: tuple(result) for test, result in entry["results"].items()}, entry["seconds"], True)
            for job, entry in found.items()}


def store_stock(reports: dict[Job, Report]) -> None:
    path = OUT / "mpi4py-stock.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for job, report in reports.items():
        if job.mode == STOCK and report.complete and stock_key(job):
            kept[stock_key(job)] = {"results": report.results, "seconds": report.seconds}
    path.write_text(json.dumps(kept) + "\n")


# ---- comparing ------------------------------------------------------------------------------------------------------


def differences(stock: Results, under: Results) -> list[str]:
    """Tests that pass on the MPI alone and not under Spillway."""
    found = []
    for test, (outcome, _) in stock.items():
        now, why = under.get(test, ("not run", ""))
        if outcome == "ok" and now != "ok":
            found.append(f"{test}: {now}{', ' + why if why else ''}")
    return found


def table(reports: dict[Job, Report]) -> tuple[str, list[str]]:
    """A row per MPI and number of ranks; and every difference as text."""
    modes = [STOCK, *sorted({job.mode for job in reports} - {STOCK}, reverse=True)]
    lines, found = [f"{'MPI':<10}{'ranks':>5}{'tests':>7}" + "".join(
        f"{'alone' if mode == STOCK else '--stage ' + mode:>18}" for mode in modes)], []
    for mpi, ranks in sorted({(job.mpi, job.ranks) for job in reports}):
        stock = reports[Job(mpi, ranks, STOCK)]
        cells = ""
        for mode in modes:
            report = reports[Job(mpi, ranks, mode)]
            passed = sum(outcome == "ok" for outcome, _ in report.results.values())
            worse = differences(stock.results, report.results)
            found += [f"{Job(mpi, ranks, mode)}: {text}" for text in worse]
            cells += f"{str(passed) + ' ok' + (', ' + str(len(worse)) + ' LOST' if worse else ''):>18}"
        lines.append(f"{mpi:<10}{ranks:>5}{len(stock.results):>7}{cells}")
    return "\n".join(lines), found


def shortened(found: list[str]) -> list[str]:
    """Of those that never ran only the first of each job, with their number: they say nothing the last that ran does
    not."""
    never: dict[str, list[str]] = {}
    for line in found:
        if line.endswith(": not run"):
            never.setdefault(line.rsplit(": ", 2)[0], []).append(line)
    first = {lines[0]: f" (and {len(lines) - 1} more)" if len(lines) > 1 else "" for lines in never.values()}
    return [line + first.get(line, "") for line in found if not line.endswith(": not run") or line in first]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", action="append", choices=launch.NAMES)
    parser.add_argument("--ranks", action="append", type=int, choices=(1, 2, 3, 4))
    parser.add_argument("--stage", action="append", choices=("none", "memory"))
    parser.add_argument("--fresh", action="store_true", help="run the MPI alone again too")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    pairs = [(mpi, ranks) for mpi in options.mpi or launch.NAMES for ranks in options.ranks or (1, 2, 4)]
    alone = [Job(mpi, ranks, STOCK) for mpi, ranks in pairs]
    under = [Job(mpi, ranks, stage) for mpi, ranks in pairs for stage in options.stage or ("none", "memory")]
    try:
        tests = test_folder(Mpi.named(pairs[0][0]))
        reports = {} if options.fresh else load_stock(alone)
        for job in reports:
            print(f"  {job}: as measured before")
        launch.spillway()
        reports |= run_jobs([job for job in alone + under if job not in reports], tests)
        store_stock(reports)
    except Missing as missing:
        print(f"mpi4py: {missing}", file=sys.stderr)
        return 1
    text, found = table(reports)
    unfinished = [job for job in alone if not reports[job].complete or not reports[job].results]
    print("\n" + text)
    for job in unfinished:
        print(f"{job}: did not come to its end, so there is nothing to compare with")
    for line in shortened(found):
        print(f"LOST {line}")
    print(f"mpi4py: {len(reports)} runs, {len(found)} tests lost under Spillway; outputs in {OUT / 'logs'}")
    return 1 if found or unfinished else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
