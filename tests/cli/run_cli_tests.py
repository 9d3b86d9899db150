#!/usr/bin/env python3
"""Runs the built `spillway` program against fake launchers and checks its messages, exit codes and traces.

    tests/cli/run_cli_tests.py --build-dir build [--mpich PREFIX] [--openmpi PREFIX] [unittest arguments]

With --mpich and --openmpi real launchers are used too. Needs nothing but Python 3.9.
"""
import argparse
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from harness import OPTIONS, CliTest
from refusals import BadArguments, RefusedPrograms  # noqa: F401, for unittest to find

SUMMARY_LINE = json.dumps({
    "node": "n1", "processes": 2, "bytes_written": 1 << 30, "bytes_read": 0, "bytes_staged": 1 << 30,
    "waited_ns": 420000000, "hidden_ns": 15800000000, "drain_ns": 16000000000, "errors": 0, "pending_bytes": 0,
    "first_error": ""}) + "\n"


class Run(CliTest):
    def library(self, mpi):
        return f"{self.environment['SPILLWAY_LIBDIR']}/libspillway-{mpi}.so"

    def run_ok(self, *arguments, code=0, environment=None):
        result = self.spillway("run", *arguments, environment=environment)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(list((self.root / "tmp").iterdir()), [], "the summary file was left behind")
        return result

    def test_hydra(self):
        self.run_ok("--memory", "1GiB", "--files", "*.{h5,nc}", "--files", "a b*", "--", "mpiexec", "-n", "2",
                    self.program(), "x")
        started = self.started()
        argv = started["argv"][1:]
        self.assertEqual(argv[-4:], ["-n", "2", self.program(), "x"])
        given = {argv[i + 1]: argv[i + 2] for i, word in enumerate(argv) if word == "-genv"}
        self.assertEqual(given["SPILLWAY_MEMORY"], "1GiB")
        self.assertEqual(given["SPILLWAY_FILES"], "*.{h5,nc},a b*")
        self.assertEqual(given["SPILLWAY_CONFIG"], "")
        self.assertEqual(given["LD_PRELOAD"], self.library("mpich"))
        self.assertNotIn("SPILLWAY_STAGE", given)
        self.assertRegex(given["SPILLWAY_JOB"], r"^[A-Za-z0-9_-]+-\d+-\d+$")
        self.assertTrue(given["SPILLWAY_SUMMARY_FILE"].startswith(str(self.root / "tmp")))
        self.assertNotIn("LD_PRELOAD", started["environment"])

    def test_openmpi(self):
        for launcher in ("mpirun", "mpirun.old"):
            with self.subTest(launcher=launcher):
                program = self.program("program_openmpi")
                self.run_ok("--stage", "none", "--", launcher, "-n", "1", program, ":", "-n", "1", program)
                argv = self.started()["argv"][1:]
                for context in (argv[:argv.index(":")], argv[argv.index(":") + 1:]):
                    self.assertIn("SPILLWAY_STAGE=none", context)
                    self.assertIn(f"LD_PRELOAD={self.library('openmpi')}", context)
                    self.assertEqual(context[-3:], ["-n", "1", program])
                self.assertNotIn("LD_PRELOAD", self.started()["environment"])

    def test_srun(self):
        self.run_ok("--stage", "none", "--", "srun", "-n4", self.program("program_openmpi"))
        started = self.started()
        self.assertEqual(started["argv"][1], f"--export=ALL,LD_PRELOAD={self.library('openmpi')}")
        self.assertEqual(started["environment"]["SPILLWAY_STAGE"], "none")
        self.assertNotIn("LD_PRELOAD", started["environment"])
        self.run_ok("--", "srun", self.program(), environment={"SLURM_EXPORT_ENV": "NONE"})
        self.assertIn("--export=SPILLWAY_CONFIG,SPILLWAY_JOB,SPILLWAY_SUMMARY_FILE,LD_PRELOAD=",
                      self.started()["argv"][1])

    def test_srun_multi_prog(self):
        (self.work / "list").write_text(f"# ranks program\n0-3 {self.program()} x\n4 {self.program('program_static')}\n")
        self.refused(["run", "--", "srun", "--multi-prog", "list"], "program_static is a static binary")
        (self.work / "list").write_text(f"0-3 {self.program()} x\n")
        self.run_ok("--", "srun", "--multi-prog", "list")

    def test_without_a_launcher(self):
        result = self.run_ok("--stage", "none", "--", self.program(), "5", code=5)
        self.assertIn("SPILLWAY_STAGE=none\n", result.stdout)
        self.assertIn(f"LD_PRELOAD={self.library('mpich')}\n", result.stdout)

    def test_scripts_take_the_mpi_of_the_launcher(self):
        self.script(self.work / "job.py", "#!/usr/bin/env python3\n")
        for launcher, mpi in (("mpiexec", "mpich"), ("mpirun", "openmpi")):
            self.run_ok("--", launcher, "-n", "2", "./job.py")
            self.assertIn(self.library(mpi), " ".join(self.started()["argv"]))
        result = self.run_ok("--log-level", "info", "--", "mpiexec", "bash", "-c", "x")
        self.assertIn("its MPI was taken from the launcher", result.stderr)
        self.run_ok("--mpi", "openmpi", "--", "srun", "./job.py")
        self.assertIn(self.library("openmpi"), self.started()["argv"][1])

    def test_wrappers(self):
        self.run_ok("--", "env", "A=1", "mpiexec", "-n", "2", "nice", "-n", "5", self.program())
        started = self.started()
        self.assertEqual(started["environment"]["A"], "1")
        self.assertEqual(started["argv"][1], "-genv")

    def test_preloads_of_the_user_stay_in_front(self):
        self.run_ok("--", "mpiexec", self.program(), environment={"LD_PRELOAD": self.library("openmpi")})
        argv = self.started()["argv"]
        self.assertEqual(argv[argv.index("LD_PRELOAD") + 1], f"{self.library('openmpi')}:{self.library('mpich')}")

    def test_the_file_reaches_the_ranks(self):
        (self.work / "spillway.toml").write_text("memory = '64MiB'\ntrace = 'traces'\n")
        (self.work / "traces").mkdir()
        self.run_ok("--memory", "1GiB", "--", "mpiexec", self.program(), environment={"SPILLWAY_CLOSE": "drained"})
        argv = self.started()["argv"]
        given = {argv[i + 1]: argv[i + 2] for i, word in enumerate(argv) if word == "-genv"}
        self.assertEqual(given["SPILLWAY_MEMORY"], "1GiB")
        self.assertEqual(given["SPILLWAY_CLOSE"], "drained")
        self.assertEqual(given["SPILLWAY_TRACE"], str(self.work / "traces"))

    def test_exit_codes(self):
        self.run_ok("--", "mpiexec", self.program(), environment={"FAKE_EXIT": "3"}, code=3)
        self.run_ok("--", "mpiexec", self.program(), environment={"FAKE_KILL": "9"}, code=137)

    @staticmethod
    def wait_for(path):
        deadline = time.monotonic() + 30
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(signal=number):
                ready = Path(str(self.record) + ".ready")
                child = subprocess.Popen(
                    [str(OPTIONS.build / "bin" / "spillway"), "run", "--", "mpiexec", self.program()], cwd=self.work,
                    env={**self.environment, "FAKE_WAIT_FOR": str(int(number)), "FAKE_WAIT_S": "30"}, stderr=subprocess.PIPE)
                self.wait_for(ready)
                child.send_signal(number)
                child.communicate(timeout=30)
                self.assertEqual(child.returncode, 0)
                self.assertEqual(self.started()["caught"], [number])
                ready.unlink()

    def test_interrupts_from_the_terminal_are_not_doubled(self):
        # The terminal signals the whole process group itself. A launcher outside that group shows what else comes.
        ready = Path(str(self.record) + ".ready")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.work)
            environment = {**self.environment, "FAKE_WAIT_FOR": str(int(signal.SIGINT)), "FAKE_WAIT_S": "0.5",
                           "FAKE_OWN_GROUP": "yes"}
            os.execve(OPTIONS.build / "bin" / "spillway", ["spillway", "run", "--", "mpiexec", self.program()], environment)
        self.wait_for(ready)
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while os.read(terminal, 4096):
                pass
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertEqual(self.started()["caught"], [])

    def test_summary(self):
        for lines, code, expected in (
                (SUMMARY_LINE, 0, "wrote 1.00 GiB; the program waited 0.21 s, 7.90 s of I/O were hidden (97 %); 0 errors"),
                (SUMMARY_LINE * 2, 0, "wrote 2.00 GiB; the program waited 0.21 s, 7.90 s of I/O were hidden (97 %); 0 errors"),
                ('{"processes":1,"errors":1,"first_error":"disk full"}\n', 1,
                 "nothing was written through MPI-IO; 1 error, first: disk full"),
                ("", 0, "nothing went through MPI-IO: no process opened a file that Spillway manages"),
                ("", 5, "no summary: the program ended with exit code 5 before it could report"),
                ("broken\n", 0, "nothing went through MPI-IO: no process opened a file that Spillway manages; 1 summary lines "
                                "were damaged")):
            with self.subTest(expected=expected):
                environment = {"FAKE_SUMMARY": lines, "FAKE_EXIT": str(code)}
                result = self.run_ok("--", "mpiexec", self.program(), environment=environment, code=code)
                self.assertEqual(result.stderr, f"spillway: {expected}\n")
                result = self.run_ok("--summary", "off", "--", "mpiexec", self.program(), environment=environment,
                                     code=code)
                self.assertEqual(result.stderr, "")


class Information(CliTest):
    def test_help_and_version(self):
        result = self.spillway("--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^spillway \d+\.\d+\.\d+\n$")
        for arguments in (["--help"], *([name, "--help"] for name in ("run", "doctor", "status", "recover"))):
            result = self.spillway(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)
        self.assertIn("spillway run", self.spillway("run", "--help").stdout)
        self.assertIn("--drain-bytes SIZE", self.spillway("run", "--help").stdout)

    def test_doctor(self):
        before = self.files()
        result = self.spillway("doctor", "--memory", "1GiB", environment={"SPILLWAY_CLOSE": "drained"})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(self.files(), before)
        for part in ("MPICH 5.0.2", "Open MPI 5.0.11", "libspillway-mpich.so", "Spillway is usable here", "O_DIRECT",
                     "io_uring", "page size"):
            self.assertIn(part, result.stdout)
        self.assertRegex(result.stdout, r"memory +1GiB +--memory\n")
        self.assertRegex(result.stdout, r"close +drained +SPILLWAY_CLOSE\n")
        self.assertRegex(result.stdout, r"stage +memory +default\n")

    def test_doctor_with_a_command(self):
        result = self.spillway("doctor", "--stage", "none", "--", "mpiexec", "-n", "2", self.program())
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("would run", result.stdout)
        self.assertIn("mpiexec -genv SPILLWAY_STAGE none", result.stdout)
        result = self.spillway("doctor", "--", "mpiexec", "-n", "2", self.program("program_static"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("is a static binary", result.stdout)
        self.assertFalse(self.record.exists())

    def test_doctor_says_what_is_missing(self):
        result = self.spillway("doctor", environment={"SPILLWAY_LIBDIR": str(self.root / "tmp")})
        self.assertEqual(result.returncode, 1)
        self.assertIn("no MPI on PATH that Spillway has a preload library for", result.stdout)
        result = self.spillway("doctor", "--trace", "/no/such")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--trace: '/no/such' is not accepted", result.stdout)


class RealLaunchers(CliTest):
    """Two ranks of a script show what reached them."""

    def ranks(self, prefix, name):
        if prefix is None:
            self.skipTest(f"no {name} given (--{name} PREFIX)")
        self.script(self.work / "show.sh", "#!/bin/sh\necho \"rank $SPILLWAY_JOB $SPILLWAY_MEMORY $LD_PRELOAD\"\n")
        extra = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        result = self.spillway("run", "--memory", "1GiB", "--", Path(prefix) / "bin" / "mpiexec", "-n", "2", "./show.sh",
                               ":", "-n", "1", "./show.sh", environment=extra)
        self.assertEqual(result.returncode, 0, result.stderr)
        ranks = [line for line in result.stdout.splitlines() if line.startswith("rank ")]
        self.assertEqual(len(ranks), 3, result.stdout + result.stderr)
        self.assertEqual(len(set(ranks)), 1, ranks)
        self.assertRegex(ranks[0], rf"^rank \S+ 1GiB \S+/libspillway-{name}\.so$")

    def test_mpich(self):
        self.ranks(OPTIONS.mpich, "mpich")

    def test_openmpi(self):
        self.ranks(OPTIONS.openmpi, "openmpi")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True, type=lambda text: Path(text).resolve(), dest="build")
    parser.add_argument("--mpich", help="prefix of an MPICH")
    parser.add_argument("--openmpi", help="prefix of an Open MPI")
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    for needed in ("bin/spillway", "cli_fixtures/bin/program_mpich"):
        if not (OPTIONS.build / needed).exists():
            parser.error(f"--build-dir: {OPTIONS.build / needed} is missing; accepted: a directory that was built")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
