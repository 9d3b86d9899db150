from __future__ import annotations

import os
import time
import unittest
from pathlib import Path
from unittest import mock

import launch


class Launch(unittest.TestCase):
    def test_the_environment_of_each_mpi(self) -> None:
        openmpi = launch.Mpi("openmpi", Path("/nowhere")).environment(2)
        self.assertEqual(openmpi["OMPI_ALLOW_RUN_AS_ROOT"], "1")
        mpich = launch.Mpi("mpich", Path("/nowhere"))
        more_than_cores = launch.cores() + 1
        with mock.patch.dict(os.environ):
            os.environ.pop("MPIR_CVAR_NOLOCAL", None)
            self.assertNotIn("MPIR_CVAR_NOLOCAL", mpich.environment(1))
            self.assertEqual(mpich.environment(more_than_cores)["MPIR_CVAR_NOLOCAL"], "1")
            self.assertNotIn("MPIR_CVAR_NOLOCAL", mpich.environment(more_than_cores, share_cores=False))

    def test_an_mpi_that_is_not_there(self) -> None:
        with mock.patch.dict(os.environ, {"DEV_MPICH_ROOT": "/nowhere"}):
            with self.assertRaisesRegex(launch.Missing, "/nowhere has no bin/mpiexec"):
                launch.Mpi.named("mpich")
        with self.assertRaisesRegex(launch.Missing, "lam: must be one of mpich, openmpi"):
            launch.Mpi.named("lam")

    def test_a_run_returns_status_and_both_streams(self) -> None:
        outcome = launch.run(["bash", "-c", "echo out; echo err >&2; exit 3"], dict(os.environ), 10)
        self.assertEqual((outcome.status, sorted(outcome.output.split())), (3, ["err", "out"]))

    def test_at_the_limit_the_whole_tree_of_processes_ends(self) -> None:
        script = "trap '' TERM; sleep 60 & echo $!; wait; wait"
        with mock.patch.object(launch.stop, "__defaults__", (0.3,)):
            outcome = launch.run(["bash", "-c", script], dict(os.environ), 0.3)
        self.assertIsNone(outcome.status)
        child = Path("/proc") / outcome.output.strip()
        end = time.monotonic() + 5
        while child.exists() and "Z" not in (child / "stat").read_text().split()[2] and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse(child.exists() and "Z" not in (child / "stat").read_text().split()[2])

    def test_bad_arguments(self) -> None:
        for arguments in ([], ["0", "true"], ["x", "true"], ["2"], ["2", "no-such-program"],
                          ["--mpi", "lam", "2", "true"]):
            self.assertEqual(launch.main(arguments), 2, arguments)


if __name__ == "__main__":
    unittest.main()
