"""What the tests of the `spillway` program share: a directory of their own, fake launchers, and how a refusal looks.

A fake launcher is a script that answers --version like a real one and otherwise records its arguments and
environment."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
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
