"""Runs bench/abt.c as §4.1 of the active buffering paper does: 32 MB on each rank, conforming and non-conforming, with
64 MB and 16 MB of buffer on each rank and without Spillway, on one file system.

MB is MiB here, as it was in the paper. The machine may be shared and noisy: the configurations take turns, and what is
reported is the median over all calls but the first of each run, with the lowest and the highest. The first call is
reported apart, because memory is touched for the first time in it.

Throughput is bytes over the longest time any one rank stays in the call, as in the paper. Where ranks share cores, one
may start when another has already ended; `by span` compares with memcpy from the first start to the last end."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import launch
import picture
import slowmount
from launch import BUILD, Missing, Mpi

MIB = 1 << 20
SYSTEMS = {"stock": None, "64": "64MiB", "16": "16MiB"}  # name -> buffer of each rank; None: without Spillway
SYSTEM_NAMES = {"stock": "MPI's own", "64": "Spillway, 64 MB", "16": "Spillway, 16 MB", "memcpy": "memcpy"}
COLOURS = {"stock": "#616e7c", "64": "#3f9d6b", "16": "#d98b2b", "memcpy": "#3a6ea5"}
# name -> (MPI, whether ranks that share cores get the settings for it)
MPIS = {"mpich": ("mpich", True), "mpich-spin": ("mpich", False), "openmpi": ("openmpi", True)}
MPI_NAMES = {"mpich": "MPICH", "mpich-spin": "MPICH, spinning", "openmpi": "Open MPI"}
LIMIT_S = 600


class Failed(Exception):
    """A run of the program failed; the text says how."""


@dataclass(frozen=True)
class Case:
    mpi: str
    ranks: int
    distribution: str
    system: str


def cases(options: argparse.Namespace) -> list[Case]:
    """Those that are compared stand together. With two ranks both distributions are the same."""
    shapes = [(ranks, distribution) for ranks in options.ranks for distribution in ("conforming", "blocks")
              if ranks > 2 or distribution == "conforming"]
    return [Case(mpi, ranks, distribution, system) for ranks, distribution in shapes for mpi in options.mpi
            for system in options.systems]


def command_of(case: Case, options: argparse.Namespace, output: Path, think_s: float) -> list[str]:
    mpi = Mpi.named(MPIS[case.mpi][0])
    program = mpi.command(case.ranks, mpi.binary("abt"), "--mib", options.mib, "--distribution", case.distribution,
                          "--calls", options.calls, "--think", f"{think_s:.2f}", "--output", output, "--check")
    memory = SYSTEMS[case.system]
    return program if memory is None else [str(launch.spillway()), "run", "--memory", memory, "--", *program]


def rates(measured: dict, times: str) -> list[float]:
    """MiB/s of every call, from one of the lists of seconds the program printed."""
    return [measured["call_bytes"] / MIB / seconds for seconds in measured[times]]


def run_case(case: Case, options: argparse.Namespace, directory: Path, think_s: float) -> dict:
    """One run: what the program measured, in MiB/s. Raises Failed, also when the file is wrong."""
    output = directory / "abt.out"
    mpi, share_cores = MPIS[case.mpi]
    outcome = launch.run(command_of(case, options, output, think_s),
                         Mpi.named(mpi).environment(case.ranks, share_cores), LIMIT_S)
    output.unlink(missing_ok=True)
    line = next((line for line in outcome.output.splitlines() if line.startswith("{")), None)
    if outcome.status != 0 or line is None:
        what = "stopped at its time limit" if outcome.status is None else f"exit status {outcome.status}"
        raise Failed(f"{case}: {what}\n{outcome.output}")
    measured = json.loads(line)
    return vars(case) | {"write_mib_s": rates(measured, "write_s"), "memcpy_mib_s": rates(measured, "memcpy_s"),
                         "measured": measured}


def raw_rate(directory: Path, mebibytes: int = 256) -> float:
    """MiB/s of a plain sequential writer into the directory, as far as the system lets it return."""
    path, piece = directory / "raw.out", b"\x5a" * (4 * MIB)
    start = time.monotonic()
    with open(path, "wb", buffering=0) as out:
        for _ in range(mebibytes // 4):
            out.write(piece)
    seconds = time.monotonic() - start
    path.unlink()
    return mebibytes / seconds


def summarize(runs: list[dict]) -> list[dict]:
    """One entry per case, in the order of first appearance; ratios are of medians."""
    entries: dict[Case, dict] = {}
    for run in runs:
        case = Case(run["mpi"], run["ranks"], run["distribution"], run["system"])
        entry = entries.setdefault(case, {"write": [], "memcpy": [], "first": [], "share": [], "span_share": []})
        steady = slice(1, None) if len(run["write_mib_s"]) > 1 else slice(None)
        entry["write"] += run["write_mib_s"][steady]
        entry["memcpy"] += run["memcpy_mib_s"][steady]
        entry["first"].append(run["write_mib_s"][0])
        entry["share"] += [w / m for w, m in zip(run["write_mib_s"][steady], run["memcpy_mib_s"][steady])]
        spans = zip(run["measured"]["memcpy_span_s"][steady], run["measured"]["write_span_s"][steady])
        entry["span_share"] += [copy_s / write_s for copy_s, write_s in spans]
    out = []
    for case, entry in entries.items():
        stock = entries.get(Case(case.mpi, case.ranks, case.distribution, "stock"))
        median = statistics.median(entry["write"])
        out.append(vars(case) | {
            "write_mib_s": {"median": median, "min": min(entry["write"]), "max": max(entry["write"])},
            "memcpy_mib_s": {"median": statistics.median(entry["memcpy"]), "min": min(entry["memcpy"]),
                             "max": max(entry["memcpy"])},
            "first_call_mib_s": statistics.median(entry["first"]),
            "of_memcpy": statistics.median(entry["share"]),
            "of_memcpy_by_span": statistics.median(entry["span_share"]),
            "of_stock": median / statistics.median(stock["write"]) if stock else None,
        })
    return out


def table(summary: list[dict]) -> str:
    lines = [f"{'MPI':<16}{'ranks':>5}  {'array':<11}{'system':<17}{'MiB/s, median (min .. max)':>30}{'memcpy':>9}"
             f"{'of memcpy':>11}{'by span':>9}{'x stock':>9}{'1st call':>10}"]
    for entry in summary:
        write = entry["write_mib_s"]
        ratio = f"{entry['of_stock']:.2f}" if entry["of_stock"] else "-"
        spread = f"{write['median']:.0f} ({write['min']:.0f} .. {write['max']:.0f})"
        lines.append(f"{MPI_NAMES[entry['mpi']]:<16}{entry['ranks']:>5}  {entry['distribution']:<11}"
                     f"{SYSTEM_NAMES[entry['system']]:<17}{spread:>30}{entry['memcpy_mib_s']['median']:>9.0f}"
                     f"{100 * entry['of_memcpy']:>9.1f} %{100 * entry['of_memcpy_by_span']:>7.1f} %{ratio:>9}"
                     f"{entry['first_call_mib_s']:>10.0f}")
    return "\n".join(lines)


def chart(summary: list[dict], note: str) -> str:
    """Like figure 2 of the paper: throughput over the number of ranks."""
    charts = []
    for mpi in dict.fromkeys(entry["mpi"] for entry in summary):
        for distribution in ("blocks", "conforming"):
            chosen = [e for e in summary if e["mpi"] == mpi and e["distribution"] == distribution]
            series = []
            for system in SYSTEMS:
                points = [picture.Point(e["ranks"], *(e["write_mib_s"][k] for k in ("min", "median", "max")))
                          for e in chosen if e["system"] == system]
                if points:
                    series.append(picture.Series(SYSTEM_NAMES[system], COLOURS[system], points))
            copies = {e["ranks"]: e["memcpy_mib_s"] for e in chosen}
            points = [picture.Point(ranks, *(copies[ranks][k] for k in ("min", "median", "max"))) for ranks in copies]
            if points:
                series.append(picture.Series(SYSTEM_NAMES["memcpy"], COLOURS["memcpy"], points, "4 3"))
                kind = "non-conforming" if distribution == "blocks" else "conforming"
                charts.append(picture.Chart(f"{MPI_NAMES[mpi]}, {kind}", series))
    return picture.throughput("Collective write throughput that the program sees", note, charts, "MiB/s", "ranks")


def measure(options: argparse.Namespace, directory: Path) -> tuple[list[dict], float]:
    """All runs, and what a plain writer reaches in that directory, in MiB/s."""
    rate = raw_rate(directory)
    runs, todo = [], cases(options)
    for repeat in range(options.repeats):
        for number, case in enumerate(todo, 1):
            # Half as long again as the plain writer needs, so that what is buffered has gone before the next call.
            think_s = options.think if options.think is not None else 0.3 + 1.5 * case.ranks * options.mib / rate
            runs.append(run_case(case, options, directory, think_s))
            print(f"  repeat {repeat + 1}/{options.repeats}, {number:>2}/{len(todo)}: {MPI_NAMES[case.mpi]}, "
                  f"{case.ranks} ranks, {case.distribution}, {SYSTEM_NAMES[case.system]}: "
                  + " ".join(f"{value:.0f}" for value in runs[-1]["write_mib_s"]) + " MiB/s", flush=True)
    return runs, rate


def parse_choices(name: str, known: list[str]):
    def convert(text: str) -> list[str]:
        chosen = text.split(",")
        for choice in chosen:
            if choice not in known:
                raise argparse.ArgumentTypeError(f"{choice} is no {name}; accepted: {', '.join(known)}")
        return chosen

    return convert


def parse_ranks(text: str) -> list[int]:
    ranks = [int(word) if word.isdigit() else 0 for word in text.split(",")]
    if not all(1 <= rank <= 64 for rank in ranks):
        raise argparse.ArgumentTypeError(f"{text}: must be numbers from 1 to 64, separated by commas")
    return ranks


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench abt", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=BUILD / "bench", help="where the file is written (build/bench)")
    parser.add_argument("--limit", type=float, help="write through slowfs in that directory, limited to so many MB/s")
    parser.add_argument("--mpi", type=parse_choices("MPI", list(MPIS)), default=["mpich", "openmpi"],
                        help="of mpich, mpich-spin (its own settings when ranks share cores), openmpi (mpich,openmpi)")
    parser.add_argument("--systems", type=parse_choices("system", list(SYSTEMS)), default=list(SYSTEMS),
                        help="of stock, 64, 16 (all)")
    parser.add_argument("--ranks", type=parse_ranks, default=[2, 4, 8], help="(2,4,8)")
    parser.add_argument("--mib", type=int, default=32, help="MiB on each rank (32)")
    parser.add_argument("--calls", type=int, default=4, help="collective writes in one run (4)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each configuration (3)")
    parser.add_argument("--think", type=float, help="seconds between calls (1.5 x what a plain writer needs, + 0.3)")
    options = parser.parse_args(arguments)
    for name, least in (("mib", 1), ("calls", 1), ("repeats", 1), ("limit", 0.1), ("think", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            parser.error(f"--{name} {value}: must be at least {least}")
    return options


def report(options: argparse.Namespace, runs: list[dict], rate: float) -> None:
    summary, out = summarize(runs), BUILD / "bench"
    where = f"slowfs at {options.limit:g} MB/s" if options.limit else "a local directory"
    parameters = {"mib_per_rank": options.mib, "calls": options.calls, "repeats": options.repeats,
                  "cores": launch.cores(), "directory": str(options.dir), "limit_mb_s": options.limit,
                  "raw_writer_mib_s": rate, "load_average": os.getloadavg()}
    document = {"parameters": parameters, "summary": summary, "runs": runs}
    (out / "abt.json").write_text(json.dumps(document, indent=1) + "\n")
    note = (f"{options.mib} MB on each rank, {options.calls} calls x {options.repeats} runs on {launch.cores()} cores, "
            f"to {where}; medians, bars from lowest to highest")
    (out / "abt.svg").write_text(chart(summary, note))
    print(f"\n{table(summary)}\n\nPlain writer to {where}: {rate:.0f} MiB/s. Figures: build/bench/abt.json, abt.svg")


def mount_limited(options: argparse.Namespace, stack: ExitStack) -> Path:
    """slowfs in --dir with the limit, until `stack` ends. What it holds lies in memory where there is room for two
    files, so that the disk behind it has no say."""
    if reason := slowmount.why_not():
        raise Missing(reason)
    file_bytes = options.calls * max(options.ranks) * options.mib * MIB
    memory = Path("/dev/shm")
    room = memory.is_dir() and shutil.disk_usage(memory).free > 2 * file_bytes
    place = memory if room else options.dir
    backing = stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-bench-", dir=place))
    fs = stack.enter_context(slowmount.slowfs(Path(backing), options.dir / "slow"))
    fs.command(f"wbw {options.limit * 1e6:.0f}")
    return fs.mount_point


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        (BUILD / "bench").mkdir(parents=True, exist_ok=True)
        options.dir.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            directory = mount_limited(options, stack) if options.limit else options.dir
            runs, rate = measure(options, directory)
        report(options, runs, rate)
        return 0
    except (Missing, Failed, OSError) as problem:
        print(f"bench abt: {problem}", file=sys.stderr)
        return 1
