from __future__ import annotations

import argparse
import contextlib
import io
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import abt


def run(system: str, write: list[float], memcpy: list[float]) -> dict:
    """What run_case returns for a call of 1 MiB, with throughputs in MiB/s."""
    spans = {"memcpy_span_s": [1 / m for m in memcpy], "write_span_s": [2 / w for w in write]}
    return {"mpi": "mpich", "ranks": 4, "distribution": "blocks", "system": system, "write_mib_s": write,
            "memcpy_mib_s": memcpy, "measured": spans}


RUNS = [run("stock", [1, 100, 300], [1000, 1000, 1000]), run("64", [5, 800, 900], [1000, 1000, 1000]),
        run("stock", [3, 200, 200], [1000, 1000, 1000]), run("64", [7, 700, 1000], [2000, 1000, 1000])]


class Abt(unittest.TestCase):
    def test_the_summary_leaves_the_first_call_apart(self) -> None:
        stock, under = abt.summarize(RUNS)
        self.assertEqual(stock["write_mib_s"], {"median": 200, "min": 100, "max": 300})
        self.assertEqual(under["write_mib_s"], {"median": 850, "min": 700, "max": 1000})
        self.assertEqual((stock["first_call_mib_s"], under["first_call_mib_s"]), (2, 6))
        self.assertAlmostEqual(under["of_memcpy"], 0.85)
        self.assertAlmostEqual(under["of_memcpy_by_span"], 0.425)
        self.assertEqual((stock["of_stock"], under["of_stock"]), (1, 4.25))

    def test_without_stock_there_is_no_ratio_to_it(self) -> None:
        [entry] = abt.summarize(RUNS[1:2])
        self.assertIsNone(entry["of_stock"])
        self.assertIn("-", abt.table([entry]))

    def test_table_and_chart_name_every_system(self) -> None:
        summary = abt.summarize(RUNS)
        text, svg = abt.table(summary), abt.chart(summary, "note")
        ElementTree.fromstring(svg)
        for name in ("MPI's own", "Spillway, 64 MB"):
            self.assertIn(name, text)
            self.assertIn(name, svg)
        self.assertIn("4.25", text)

    def test_throughput_is_bytes_over_time(self) -> None:
        self.assertEqual(abt.rates({"call_bytes": 4 << 20, "write_s": [2, 4]}, "write_s"), [2, 1])

    def test_cases_that_are_compared_take_turns(self) -> None:
        options = argparse.Namespace(mpi=["mpich"], ranks=[2, 4], systems=["stock", "64"])
        self.assertEqual([(c.ranks, c.distribution, c.system) for c in abt.cases(options)], [
            (2, "conforming", "stock"), (2, "conforming", "64"), (4, "conforming", "stock"), (4, "conforming", "64"),
            (4, "blocks", "stock"), (4, "blocks", "64")])

    def test_bad_options_are_named(self) -> None:
        for options in (["--mpi", "lam"], ["--systems", "32"], ["--ranks", "2,x"], ["--mib", "0"], ["--repeats", "0"]):
            error = io.StringIO()
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(error):
                abt.parse(options)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(options[0], error.getvalue())

    def test_the_default_directory_is_in_the_build(self) -> None:
        self.assertEqual(abt.parse([]).dir, Path(abt.BUILD / "bench"))


if __name__ == "__main__":
    unittest.main()
