"""The comparison of tests/real/mpi4py.py. Loaded by path: by name it would be taken for the package."""

from __future__ import annotations

import importlib.util
import sys
import unittest
from pathlib import Path

_PATH = Path(__file__).resolve().parents[2] / "tests" / "real" / "mpi4py.py"
_SPEC = importlib.util.spec_from_file_location("real_mpi4py", _PATH)
runner = importlib.util.module_from_spec(_SPEC)
sys.modules["real_mpi4py"] = runner
_SPEC.loader.exec_module(runner)


def rank(*outcomes: tuple[str, str], end: bool = True) -> list[dict]:
    """What a rank records: every test starts as hung."""
    records = []
    for test, outcome in outcomes:
        records.append({"test": test, "outcome": "hung"})
        if outcome != "hung":
            records.append({"test": test, "outcome": outcome, "why": f"why {test}"})
    return records + ([{"end": True}] if end else [])


class Merge(unittest.TestCase):
    def test_the_worst_rank_counts(self) -> None:
        results, complete = runner.merge([rank(("a", "ok"), ("b", "ok"), ("c", "skip")),
                                          rank(("a", "ok"), ("b", "error"), ("c", "ok"))])
        self.assertTrue(complete)
        self.assertEqual({test: outcome for test, (outcome, _) in results.items()},
                         {"a": "ok", "b": "error", "c": "skip"})
        self.assertEqual(results["b"][1], "rank 1: why b")

    def test_a_rank_that_hangs_or_never_came(self) -> None:
        results, complete = runner.merge([rank(("a", "ok"), ("b", "ok")), rank(("a", "ok"), ("b", "hung"), end=False)])
        self.assertFalse(complete)
        self.assertEqual(results["b"][0], "hung")
        results, complete = runner.merge([rank(("a", "ok")), []])
        self.assertFalse(complete)
        self.assertEqual(results["a"][0], "not run")

    def test_a_part_that_failed_is_not_forgotten(self) -> None:
        records = rank(("a", "fail"), end=False) + [{"test": "a", "outcome": "ok"}, {"end": True}]
        self.assertEqual(runner.merge([records])[0]["a"][0], "fail")


class Compare(unittest.TestCase):
    STOCK = {"a": ("ok", ""), "b": ("ok", ""), "c": ("skip", ""), "d": ("fail", "rank 0: x")}

    def test_only_what_passes_alone_can_be_lost(self) -> None:
        self.assertEqual(runner.differences(self.STOCK, self.STOCK), [])
        under = {"a": ("ok", ""), "b": ("fail", "rank 2: E"), "c": ("fail", ""), "d": ("hung", "")}
        self.assertEqual(runner.differences(self.STOCK, under), ["b: fail, rank 2: E"])

    def test_a_test_that_is_skipped_or_gone_is_lost(self) -> None:
        self.assertEqual(runner.differences(self.STOCK, {"a": ("skip", "")}), ["a: skip", "b: not run"])

    def test_the_table_counts_what_is_lost(self) -> None:
        def report(results: dict) -> runner.Report:
            return runner.Report(results, 1.0, True)

        text, found = runner.table({runner.Job("mpich", 2, "stock"): report(self.STOCK),
                                    runner.Job("mpich", 2, "none"): report(self.STOCK),
                                    runner.Job("mpich", 2, "memory"): report({"a": ("ok", "")})})
        self.assertIn("1 ok, 1 LOST", text)
        self.assertEqual(found, ["mpich, 2 ranks, under Spillway, --stage memory: b: not run"])

    def test_tests_that_never_ran_are_counted(self) -> None:
        found = ["mpich, 2 ranks: a: fail", "mpich, 2 ranks: b: not run", "mpich, 2 ranks: c: not run",
                 "mpich, 4 ranks: b: not run"]
        self.assertEqual(runner.shortened(found), ["mpich, 2 ranks: a: fail", "mpich, 2 ranks: b: not run (and 1 more)",
                                                   "mpich, 4 ranks: b: not run"])


if __name__ == "__main__":
    unittest.main()
