"""What `spillway run` refuses: one line that names the key, the value and what is accepted, exit code 2, and nothing
touched."""
import os
import unittest
from pathlib import Path

from harness import CliTest


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
