"""Runs mpi4py's own tests in one rank and records every outcome; started by mpi4py.py on all ranks.

    mpi4py_ranks.py TEST-FOLDER RECORDS [ARGUMENT OF main.py]...

Writes RECORDS.<rank>, a JSON line when a test starts and one when it ends, so that a rank that hangs or dies leaves
where. After the last test comes {"end": true}."""

import json
import sys
import unittest

# Not this folder: mpi4py must be the package, not the program beside this file.
sys.path[0] = sys.argv[1]
import main  # noqa: E402  (mpi4py's, from TEST-FOLDER)


class Recorder(unittest.TextTestResult):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        from mpi4py import MPI

        self._records = open(f"{sys.argv[2]}.{MPI.COMM_WORLD.Get_rank()}", "w", buffering=1)

    def _write(self, **record):
        self._records.write(json.dumps(record) + "\n")

    def _outcome(self, test, outcome, error=None):
        why = "".join(str(error[1]).splitlines()[:1]) if error else ""
        self._write(test=test.id(), outcome=outcome, why=f"{error[0].__name__}: {why}" if error else "")

    def startTest(self, test):
        super().startTest(test)
        self._write(test=test.id(), outcome="hung")  # unless another line follows

    def addSuccess(self, test):
        super().addSuccess(test)
        self._outcome(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._outcome(test, "skip")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._outcome(test, "skip")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._outcome(test, "fail", err)

    def addError(self, test, err):
        super().addError(test, err)
        self._outcome(test, "error", err)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._outcome(test, "fail")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._outcome(test, "fail" if issubclass(err[0], test.failureException) else "error", err)

    def stopTestRun(self):
        super().stopTestRun()
        self._write(end=True)


class Runner(unittest.TextTestRunner):
    resultclass = Recorder


if __name__ == "__main__":
    main.TestProgram(module=None, argv=[sys.argv[0], *sys.argv[3:]], testRunner=Runner)
