#!/usr/bin/env python3
"""Runs the built `spillway` program against fake launchers and checks its messages, exit codes and traces.

    tests/cli/run_cli_tests.py --build-dir build [--mpich PREFIX] [--openmpi PREFIX] [unittest arguments]

A fake launcher is a script that answers --version like a real one and otherwise records its arguments and
environment. With --mpich and --openmpi real launchers are used too. Needs nothing but Python 3.9.
"""
import argparse
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

OPTIONS = argparse.Namespace()

VERSIONS = {
    "hydra": "HYDRA build details:\n    Version:                                 5.0.2\n",
    "orte": "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
    "prrte": "mpirun (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
    "srun": "slurm 22.05.8\n",
    "other": "mpiexec of another kind, version 7\n",
}

FAKE_LAUNCHER = """\
    #!{python} -IS
    import json, os, signal, sys
    if sys.argv[1:] == ["--version"]:
        print({version!r}, end="")
        sys.exit()
    record = os.environ["FAKE_RECORD"]
    given = dict(os.environ)
    for i, word in enumerate(sys.argv):
        if word == "-genv":
            given[sys.argv[i + 1]] = sys.argv[i + 2]
        if word == "-x" and "=" in sys.argv[i + 1]:
            name, value = sys.argv[i + 1].split("=", 1)
            given[name] = value
    if "FAKE_SUMMARY" in os.environ:
        with open(given["SPILLWAY_SUMMARY_FILE"], "a") as file:
            file.write(os.environ["FAKE_SUMMARY"])
    caught = []
    if "FAKE_WAIT_FOR" in os.environ:
        number = int(os.environ["FAKE_WAIT_FOR"])
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])
        if "FAKE_OWN_GROUP" in os.environ:
            os.setpgid(0, 0)
        open(record + ".ready", "w").close()
        if signal.sigtimedwait([number], float(os.environ["FAKE_WAIT_S"])) is not None:
            caught.append(number)
    with open(record, "w") as file:
        json.dump({{"argv": sys.argv, "environment": dict(os.environ), "caught": caught}}, file)
    if "FAKE_KILL" in os.environ:
        os.kill(os.getpid(), int(os.environ["FAKE_KILL"]))
    sys.exit(int(os.environ.get("FAKE_EXIT", "0")))
"""

SUMMARY_LINE = json.dumps({
    "node": "n1", "processes": 2, "bytes_written": 1 << 30, "bytes_read": 0, "bytes_staged": 1 << 30,
    "waited_ns": 420000000, "hidden_ns": 15800000000, "drain_ns": 16000000000, "errors": 0, "pending_bytes": 0,
    "first_error": ""}) + "\n"


class CliTest(unittest.TestCase):
    """A directory of its own, fake launchers on PATH, and no SPILLWAY_ variable but those of the test."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="spillway-cli-")
        self.addCleanup(holder.cleanup)
        self.root = Path(holder.name)
        for name in ("bin", "work", "tmp", "shm"):
            (self.root / name).mkdir()
        self.work = self.root / "work"
        self.pid = 0  # of the last spillway started
        self.record = self.root / "record"
        self.programs = OPTIONS.build / "cli_fixtures" / "bin"
        for name, family in (("mpiexec", "hydra"), ("mpirun", "prrte"), ("mpirun.old", "orte"), ("srun", "srun"),
                             ("mpiexec.other", "other")):
            self.script(self.root / "bin" / name, textwrap.dedent(FAKE_LAUNCHER).format(
                python=sys.executable, version=VERSIONS[family]))
        self.script(self.root / "bin" / "aprun", "#!/bin/sh\nexit 0\n")
        self.environment = {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.root),
            "TMPDIR": str(self.root / "tmp"),
            "FAKE_RECORD": str(self.record),
            "SPILLWAY_LIBDIR": str(OPTIONS.build / "cli_fixtures" / "lib"),
        }
        for name in os.environ:
            if name.endswith("SAN_OPTIONS"):
                self.environment[name] = os.environ[name]
        # A library that a test preloads into a `spillway` built with the address sanitizer comes before that one's.
        self.environment["ASAN_OPTIONS"] = self.environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"

    @staticmethod
    def script(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def program(self, name="program_mpich"):
        return str(self.programs / name)

    def spillway(self, *arguments, environment=None, **more):
        started = subprocess.Popen([str(OPTIONS.build / "bin" / "spillway"), *map(str, arguments)], cwd=self.work,
                                   env={**self.environment, **(environment or {})}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **more)
        self.pid = started.pid
        try:
            output, errors = started.communicate(timeout=60)
        finally:
            started.kill()
        return subprocess.CompletedProcess(started.args, started.returncode, output, errors)

    def files(self):
        """Everything that exists, to see that nothing was created or removed. Of the jobs in shared memory, which others may
        come and go with meanwhile, those that the last spillway here could have made: its PID is in their names."""
        return sorted(str(path) for path in self.root.rglob("*")) + sorted(
            str(path) for path in Path("/dev/shm").glob(f"spillway-{os.getuid()}/*-{self.pid}-*"))

    def refused(self, arguments, *parts, environment=None, **more):
        """Runs, and checks that it was refused with these words, that nothing started and nothing was created."""
        before = self.files()
        result = self.spillway(*arguments, environment=environment, **more)
        self.assertEqual(result.returncode, 2, (arguments, result.stderr))
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("spillway: "), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertFalse(self.record.exists(), "the launcher was started")
        self.assertEqual(self.files(), before)
        return result.stderr

    def started(self):
        return json.loads(self.record.read_text())


class BadArguments(CliTest):
    def test_options_of_the_table(self):
        for option, value, accepted in (
                ("--stage", "disk", "none, memory"),
                ("--memory", "12apples", "auto, or a size from 0 to 1TiB"),
                ("--memory", "2TiB", "auto, or a size from 0 to 1TiB"),
                ("--memory", "-1", "auto, or a size from 0 to 1TiB"),
                ("--algorithm", "three_phase", "auto, two_phase, individual"),
                ("--close", "later", "deferred, drained"),
                ("--direct", "maybe", "auto, on, off"),
                ("--drain-bytes", "1", "a size from 64KiB to 64MiB"),
                ("--cycle-bytes", "64GiB", "a size from 64KiB to 1GiB"),
                ("--files", "{a,b", "file name patterns"),
                ("--log-level", "loud", "error, warning, info, debug"),
                ("--summary", "perhaps", "on, off"),
                ("--mpi", "lam", "auto, mpich, openmpi, abi")):
            with self.subTest(option=option, value=value):
                self.refused(["run", f"{option}={value}", "--", "mpiexec", self.program()], f"{option}: '{value}'",
                             "accepted: " + accepted)

    def test_values_of_the_environment(self):
        for name, value, accepted in (("SPILLWAY_STAGE", "disk", "none, memory"),
                                      ("SPILLWAY_MEMORY", "much", "a size from 0 to 1TiB"),
                                      ("SPILLWAY_DRAIN_BYTES", "128MiB", "a size from 64KiB to 64MiB")):
            with self.subTest(name=name):
                self.refused(["run", "--", "mpiexec", self.program()], f"{name}: '{value}'", "accepted: ", accepted,
                             environment={name: value})
        self.refused(["run", "--", "mpiexec", self.program()], "unknown variable SPILLWAY_MEMROY",
                     "did you mean 'SPILLWAY_MEMORY'?", environment={"SPILLWAY_MEMROY": "1GiB"})

    def test_values_of_the_file(self):
        file = self.work / "spillway.toml"
        for text, parts in (("memory = 'much'\n", ("spillway.toml:1: memory: 'much'", "accepted: auto, or a size")),
                            ("\nmemroy = 1\n", ("spillway.toml:2: unknown key 'memroy'", "did you mean 'memory'?")),
                            ("stage = \n", ("spillway.toml:1: not TOML",)),
                            ("[stage]\n", ("spillway.toml:1: stage", "accepted: a text"))):
            with self.subTest(text=text):
                file.write_text(text)
                self.refused(["run", "--", "mpiexec", self.program()], *parts)
        file.unlink()
        self.refused(["run", "--config", "/nowhere.toml", "--", "mpiexec", self.program()], "/nowhere.toml",
                     "No such file")
        self.refused(["run", "--", "mpiexec", self.program()], "/nowhere.toml",
                     environment={"SPILLWAY_CONFIG": "/nowhere.toml"})

    def test_directories(self):
        plain = self.root / "plain"
        plain.write_text("")
        for option in ("--trace", "--shm-dir"):
            for path, why in (("/no/such/directory", "No such file or directory"), (plain, "Not a directory")):
                with self.subTest(option=option, path=path):
                    self.refused(["run", option, path, "--", "mpiexec", self.program()], f"{option}: '{path}'", why,
                                 "accepted: the path of an existing directory that can be written to")
        self.refused(["run", "--", "mpiexec", self.program()], "SPILLWAY_TRACE: '/no/such'", "No such file",
                     environment={"SPILLWAY_TRACE": "/no/such"})
        self.refused(["run", "--shm-dir=", "--", "mpiexec", self.program()], "--shm-dir: ''", "accepted: the path")

    def test_unwritable_directory(self):
        locked = self.root / "locked"
        locked.mkdir()
        locked.chmod(0o555)
        self.root.chmod(0o755)
        # Root may write everywhere, so it becomes somebody else.
        somebody = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
        try:
            self.spillway("--version", **somebody)
        except PermissionError:
            self.skipTest("another user than root cannot reach the build directory")
        self.refused(["run", "--trace", locked, "--", "mpiexec", self.program()], f"--trace: '{locked}'",
                     "Permission denied", "accepted: the path of an existing directory", **somebody)

    def test_unknown_and_incomplete_options(self):
        run = ["--", "mpiexec", self.program()]
        self.refused(["run", "--memroy", "1G", *run], "unknown option --memroy", "did you mean '--memory'?", "--stage")
        self.refused(["run", "--drain_bytes=1M", *run], "unknown option --drain_bytes", "'--drain-bytes'")
        self.refused(["run", "-x", *run], "unknown option -x", "accepted: ")
        self.refused(["run", "--memory", *run], "--memory: a value is missing", "accepted: auto, or a size")
        self.refused(["run", "--memory", "--stage", "none", *run], "--memory: a value is missing")
        self.refused(["run", "--stage", "none", "--stage", "none", *run], "--stage: given 2 times", "accepted: once")
        self.refused(["run", "mpiexec", self.program()], "unexpected argument 'mpiexec'", "-- mpiexec -n 4 ./program")
        self.refused(["run"], "no command behind '--'")
        self.refused(["run", "--"], "no command behind '--'")

    def test_unknown_commands(self):
        self.refused([], "no command given", "accepted: doctor, recover, run, status")
        self.refused(["rum"], "unknown command 'rum'", "did you mean 'run'?", "accepted: doctor, recover, run, status")
        self.refused(["--stage", "none"], "unknown option --stage", "accepted: --help, --version")
        self.refused(["doctor", "extra"], "unexpected argument 'extra'")
        self.refused(["doctor", "--memory", "much"], "--memory: 'much'")
        self.refused(["configuration", "--", "ls"], "takes no command")


class RefusedPrograms(CliTest):
    def test_programs_that_cannot_be_reached(self):
        for name, part in (("program_static", "is a static binary"), ("program_plain", "no MPI found in"),
                           ("program_old_mpi", "is linked to libmpi.so.20"),
                           ("program_two_mpis", "is linked to two MPIs"), ("program_absent", "there is no program")):
            with self.subTest(name=name):
                self.refused(["run", "--", "mpiexec", "-n", "2", self.program(name)], name, part)

    def test_files_that_are_no_programs(self):
        text = self.work / "text"
        text.write_text("hello\n")
        self.refused(["run", "--", "mpiexec", "./text"], "./text is not executable")
        text.chmod(0o755)
        self.refused(["run", "--", "mpiexec", "./text"], "./text is neither an ELF program nor a script")
        text.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(60))
        self.refused(["run", "--", "mpiexec", "./text"], "./text is a 32-bit program", "accepted: 64-bit programs")
        text.write_bytes(Path(self.program()).read_bytes()[:600])
        self.refused(["run", "--", "mpiexec", "./text"], "./text is a damaged ELF file")
        self.refused(["run", "--", "mpiexec", self.work], "is a directory")
        self.refused(["run", "--", "mpiexec", "no_such_program"], "there is no program 'no_such_program' in PATH")

    def test_mixed_mpis(self):
        self.refused(["run", "--", "mpirun", self.program()], "mixed MPIs", "Open MPI 5.0.11", "program_mpich",
                     "accepted: programs and launcher of one MPI")
        self.refused(["run", "--", "mpiexec", self.program("program_openmpi")], "mixed MPIs", "MPICH 5.0.2")
        self.refused(["run", "--", "srun", self.program(), ":", self.program("program_openmpi")], "mixed MPIs")
        self.refused(["run", "--mpi", "openmpi", "--", "mpiexec", self.program()], "mixed MPIs", "--mpi: 'openmpi'")
        self.refused(["run", "--mpi", "openmpi", "--", "mpiexec", "sh"], "mixed MPIs", "--mpi says Open MPI")

    def test_an_mpi_that_nothing_shows(self):
        self.refused(["run", "--", "srun", "sh", "-c", "x"], "cannot tell which MPI sh uses", "--mpi mpich|openmpi")
        self.refused(["run", "--", "sh", "-c", "x"], "cannot tell which MPI sh uses", "no launcher tells")

    def test_launchers(self):
        self.refused(["run", "--", "mpiexec.other", self.program()], "no launcher that Spillway knows",
                     "begins 'mpiexec of another kind, version 7'", "accepted: mpiexec and mpirun of MPICH")
        self.refused(["run", "--", "aprun", "-n", "2", self.program()], "aprun is a launcher that Spillway cannot drive")
        self.refused(["run", "--", "mpiexec", "-n", "2"], "no program found behind the options of mpiexec")
        self.refused(["run", "--", "mpirun", "--app", "file"], "--app: the programs in such a file cannot be reached")
        self.refused(["run", "--", "/nowhere/mpiexec", self.program()], "there is no program /nowhere/mpiexec")
        self.refused(["run", "--", "mpirun.old", self.program("program_openmpi")], "mca_base_env_list",
                     environment={"OMPI_MCA_mca_base_env_list": "A=1"})

    def test_inside_a_rank(self):
        self.refused(["run", "--", self.program()], "PMI_SIZE is 4", "accepted: spillway run [options] -- LAUNCHER",
                     environment={"PMI_SIZE": "4"})

    def test_preload_library(self):
        empty = {"SPILLWAY_LIBDIR": str(self.root / "tmp")}
        self.refused(["run", "--", "mpiexec", self.program()], "libspillway-mpich.so", empty["SPILLWAY_LIBDIR"],
                     environment=empty)
        blank = self.root / "a b"
        blank.mkdir()
        (blank / "libspillway-mpich.so").write_text("")
        self.refused(["run", "--", "mpiexec", self.program()], "LD_PRELOAD cannot hold a path with a blank",
                     environment={"SPILLWAY_LIBDIR": str(blank)})


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
