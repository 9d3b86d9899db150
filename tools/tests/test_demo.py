from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import demo
from launch import Mpi

OUTPUT = """jacobi: 8 x 8 doubles on 1 x 1 ranks, 2 iterations, 1 snapshots, 512 bytes
run time           2.500 s
compute time       2.000 s
visible I/O        0.500 s  (0.400 s in MPI_File calls, 0.020 s in MPI_Finalize)
"""
PLAN = demo.Plan(Mpi("mpich", Path("/nowhere")), 4, 10, 50, 32 << 20)


class Demo(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="spillway-demo-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_times_are_read_from_what_the_program_prints(self) -> None:
        self.assertEqual(demo.parse_times(OUTPUT, 3.0), demo.Times(2.5, 2.0, 0.5, 0.4, 0.02, 3.0))
        with self.assertRaises(demo.Failed):
            demo.parse_times("run time 2.5 s\n", 3.0)

    def test_files_are_compared_byte_by_byte(self) -> None:
        a, b = self.folder / "a", self.folder / "b"
        a.write_bytes(b"x" * 1000)
        b.write_bytes(b"x" * 999 + b"y")
        self.assertFalse(demo.same_bytes(a, b, 1000))
        b.write_bytes(b"x" * 1000)
        self.assertTrue(demo.same_bytes(a, b, 1000))
        self.assertFalse(demo.same_bytes(a, b, 1001))
        b.write_bytes(b"x" * 999)
        self.assertFalse(demo.same_bytes(a, b, 1000))

    def test_the_result_holds_what_it_promises(self) -> None:
        without, under = demo.Times(17, 10, 7, 7, 0, 18), demo.Times(10.7, 10, 0.7, 0.5, 0.2, 11)
        result = demo.result(PLAN, without, under, True)
        self.assertEqual(result["hidden_percent"], 90)
        self.assertTrue(result["identical"])
        self.assertEqual((result["drain_s"], result["bound_s"], result["run_over_bound"]), (10, 10, 1.07))
        for run in ("without", "with"):
            self.assertLessEqual({"run_s", "compute_s", "visible_io_s"}, result[run].keys())
        self.assertEqual(json.loads(json.dumps(result)), result)
        text = demo.table(PLAN, without, under, 90.0, False)
        self.assertIn("90.0 %", text)
        self.assertRegex(text, r"files identical +NO")

    def test_the_timeline_is_read_from_log_and_trace(self) -> None:
        second = 10 ** 9
        for rank in range(2):
            lines = [{"jacobi_log": 1, "rank": rank},
                     {"phase": "compute", "t0": 5 * second, "t1": 7 * second, "snapshot": 0},
                     {"phase": "io", "t0": 7 * second, "t1": 8 * second, "snapshot": 0}]
            (self.folder / f"log.{rank}").write_text("\n".join(map(json.dumps, lines)) + '\n{"phase":"comp')
        trace = [{"spillway_trace": 1, "rank": 1, "pid": 7}, {"t0": 6 * second, "t1": 7 * second, "what": "drain"},
                 {"t0": 6 * second, "t1": 7 * second, "what": "exchange"}]
        (self.folder / "trace-1-7.jsonl").write_text("\n".join(map(json.dumps, trace)))
        run = demo.read_run("t", "n", self.folder / "log", 2, self.folder)
        self.assertEqual(run.run_s, 3)
        self.assertEqual(run.ranks[0].compute, [(0, 2)])
        self.assertEqual(run.ranks[0].visible, [(2, 3)])
        self.assertEqual([rank.background for rank in run.ranks], [[], [(1, 2)]])

    def test_snapshots_are_counted_while_the_program_runs(self) -> None:
        log = self.folder / "log.0"
        self.assertEqual(demo.snapshots_in(log), 0)
        log.write_text('{"phase":"io","snapshot":-1}\n{"phase":"compute","snapshot":0}\n{"phase":"io","snapshot":0}\n')
        self.assertEqual(demo.snapshots_in(log), 1)

    def test_bad_options(self) -> None:
        for options in (["--ranks", "0"], ["--seconds", "0.5"], ["--mpi", "lam"], ["--quick"]):
            error = io.StringIO()
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(error):
                demo.parse(options)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(options[0], error.getvalue())


if __name__ == "__main__":
    unittest.main()
