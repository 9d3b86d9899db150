#!/usr/bin/env python3
# spillway-test: slowfs, about 10 s
"""slowfs does what tools/slowfs/README.md says: function, faults, limits, and how it ends. Two mounts ("nodes") of one
server. Skips (77) where nothing can be mounted.

    run.py [--accuracy] [unittest arguments]

The limits are tested from one side, that they are never exceeded, because that holds on a busy machine too.
--accuracy also tests that they are reached, and needs a quiet one."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
SLOWFS = Path(os.environ.get("DEV_BUILD", ROOT / "build")) / "bin" / "slowfs"
MIB = 1 << 20
accuracy = "--accuracy" in sys.argv


def unmount(mount_point: Path) -> None:
    command = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
    subprocess.run([*command, str(mount_point)], stderr=subprocess.DEVNULL, check=False)


def error_of(call: Callable, *arguments) -> str | None:
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def put(path: Path, mebibytes: int, request: int = MIB) -> None:
    """One writer of a whole file, from offset 0. Its buffer is page-aligned: else FUSE splits every request."""
    with mmap.mmap(-1, request) as data:
        data.write(b"x" * request)
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        for i in range(mebibytes * MIB // request):
            os.pwrite(fd, data, i * request)
        os.close(fd)


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


class TwoNodes(unittest.TestCase):
    """a and b are mounts of the same backing directory and the same server."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="slowfs-test-")
        top = Path(cls.folder.name)
        cls.back, cls.a, cls.b = (top / name for name in ("back", "a", "b"))
        for directory in (cls.back, cls.a, cls.b):
            directory.mkdir()
        for node in (cls.a, cls.b):
            subprocess.run([SLOWFS, "-s", top / "state", "-t", "0", cls.back, node], check=True)
            cls.addClassCleanup(unmount, node)

    @classmethod
    def tearDownClass(cls) -> None:
        for node in (cls.a, cls.b):
            unmount(node)
        cls.folder.cleanup()

    def setUp(self) -> None:
        self.command("clear", "reset", "wbw 0", "rbw 0", "lat all 0", "curve off")

    def command(self, *lines: str) -> None:
        with open(self.a / ".slowfs-control", "w") as control:
            control.write("\n".join(lines) + "\n")

    def counters(self) -> dict[str, float]:
        text = (self.b / ".slowfs-stats").read_text()
        return {name: float(value) for name, value in (line.split() for line in text.splitlines())}

    def rate(self, writers: int, mebibytes: int, request: int = MIB, one_file: bool = False) -> float:
        """MB/s of `writers` at once, on both nodes in turn, each with a file of its own unless `one_file`."""
        names = [(self.a if one_file else (self.a, self.b)[i % 2]) / f"w{0 if one_file else i}" for i in range(writers)]
        threads = [threading.Thread(target=put, args=(name, mebibytes, request)) for name in names]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return writers * mebibytes * MIB / 1e6 / (time.monotonic() - start)


class Function(TwoNodes):
    def test_what_one_node_writes_the_other_reads(self) -> None:
        (self.a / "x").write_text("hello")
        self.assertEqual((self.b / "x").read_text(), "hello")
        big = os.urandom(5 * MIB)
        (self.a / "big").write_bytes(big)
        self.assertEqual((self.b / "big").read_bytes(), big)

    def test_append(self) -> None:
        (self.a / "log").write_text("hello")
        with open(self.a / "log", "a") as log:
            log.write(" world")
        self.assertEqual((self.back / "log").read_text(), "hello world")

    def test_names_and_attributes(self) -> None:
        top = self.a / "names"
        top.mkdir()
        (top / "x").write_text("hello world")
        os.truncate(top / "x", 5)
        os.rename(top / "x", top / "y")
        os.symlink("y", top / "soft")
        os.link(top / "y", top / "hard")
        (top / "d").mkdir()
        os.chmod(top / "y", 0o600)
        os.utime(top / "y", (1, 2))
        self.assertEqual(sorted(os.listdir(top)), ["d", "hard", "soft", "y"])
        self.assertEqual(os.readlink(top / "soft"), "y")
        st = os.stat(self.back / "names" / "y")
        self.assertEqual((st.st_size, st.st_mode & 0o777, st.st_mtime), (5, 0o600, 2))

    def test_an_unlinked_file_stays_while_it_is_open(self) -> None:
        (self.a / "gone").write_text("hello")
        fd = os.open(self.a / "gone", os.O_RDWR)
        self.addCleanup(os.close, fd)
        os.unlink(self.a / "gone")
        os.pwrite(fd, b"Z", 3)
        self.assertEqual(os.pread(fd, 10, 0), b"helZo")
        self.assertEqual(os.fstat(fd).st_size, 5)

    def test_byte_range_locks_reach_the_other_node_and_end_with_close(self) -> None:
        path = self.a / "lock"
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
        try_lock = "import fcntl,os,sys; fcntl.lockf(os.open(sys.argv[1],os.O_RDWR),6,10,int(sys.argv[2]))"

        def locked(at: int) -> bool:
            command = [sys.executable, "-c", try_lock, str(self.b / "lock"), str(at)]
            return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode != 0

        self.assertTrue(locked(5))
        self.assertFalse(locked(10))
        os.close(fd)
        self.assertFalse(locked(5))

    def test_counters(self) -> None:
        fd = os.open(self.a / "odd", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        os.pwrite(fd, b"q" * 1000, 7)
        os.fsync(fd)
        os.close(fd)
        seen = self.counters()
        self.assertEqual([seen[name] for name in ("write_requests", "write_bytes", "write_largest", "fsync_requests")],
                         [1, 1000, 1000, 1])
        self.assertEqual(seen["write_from_0k"], 1)


class Faults(TwoNodes):
    def setUp(self) -> None:
        super().setUp()
        self.fd = os.open(self.a / "f", os.O_CREAT | os.O_RDWR)
        self.addCleanup(lambda: error_of(os.close, self.fd))

    def test_fail_skips_then_counts(self) -> None:
        for name in ("EIO", "ENOSPC", "EDQUOT"):
            self.command(f"fail write {name} 2 1")
            seen = [error_of(os.pwrite, self.fd, b"x" * 10, 0) for _ in range(4)]
            self.assertEqual(seen, [None, name, name, None])
        self.assertEqual(self.counters()["faults_injected"], 6)

    def test_fail_of_another_name(self) -> None:
        self.command("fail write EIO 1 0 nosuchname")
        self.assertIsNone(error_of(os.pwrite, self.fd, b"x", 0))

    def test_fail_open_and_fsync(self) -> None:
        self.command("fail open EACCES 1", "fail fsync EIO 1")
        self.assertEqual(error_of(os.open, self.b / "f", os.O_RDONLY), "EACCES")
        self.assertEqual(error_of(os.fsync, self.fd), "EIO")

    def test_short_write(self) -> None:
        self.command("short write 1")
        self.assertEqual([os.pwrite(self.fd, b"y" * 1000, 0) for _ in range(2)], [500, 1000])

    def test_deferred_error_comes_once_at_fsync_or_close(self) -> None:
        self.command("defer ENOSPC 1")
        os.pwrite(self.fd, b"lost", 0)
        self.assertEqual([error_of(os.fsync, self.fd) for _ in range(2)], ["ENOSPC", None])
        self.command("defer EDQUOT 1")
        os.pwrite(self.fd, b"lost", 0)
        self.assertEqual(error_of(os.close, self.fd), "EDQUOT")
        self.assertNotIn(b"lost", (self.back / "f").read_bytes())

    def test_drop_loses_silently_from_an_offset(self) -> None:
        self.command("drop 100")
        os.pwrite(self.fd, b"a" * 150, 0)
        os.pwrite(self.fd, b"b" * 10, 500)
        self.assertEqual((self.back / "f").stat().st_size, 100)

    def test_stall_holds_every_request(self) -> None:
        self.command("stall 0.3")
        start = time.monotonic()
        os.pwrite(self.fd, b"c", 0)
        self.assertGreater(time.monotonic() - start, 0.25)

    def test_a_wrong_command_is_refused_and_changes_nothing(self) -> None:
        for line in ("frobnicate 3", "wbw", "wbw fast", "wbw 10X", "lat sleep 3", "curve 1-2", "fail write ESOMETHING",
                     "fail write EIO 0", "short fsync", "drop", "stall 1 lunch", "clear all"):
            self.assertEqual(error_of(self.command, line), "EINVAL", line)
        self.assertIsNone(error_of(os.pwrite, self.fd, b"x", 0))


class Limits(TwoNodes):
    def expect(self, rate: float, limit: float, reached: float = 0.9) -> None:
        self.assertLess(rate, 1.03 * limit)
        if accuracy:
            self.assertGreater(rate, reached * limit)

    def test_bandwidth_of_all_nodes_together(self) -> None:
        for limit, writers, mebibytes in ((25, 1, 10), (125, 1, 50), (125, 4, 15), (125, 16, 4)):
            with self.subTest(limit=limit, writers=writers):
                self.command(f"wbw {limit}M")
                self.expect(self.rate(writers, mebibytes), limit)

    def test_latency_adds_to_the_transfer(self) -> None:
        self.command("wbw 100M", "lat write 5000")
        self.expect(self.rate(1, 30), 1.048576 / (1.048576 / 100 + 0.005), reached=0.85)

    def test_contention_curve(self) -> None:
        self.command("wbw 100M", "curve 1:0.5,4:1,16:0.25")
        for writers, limit in ((1, 50), (16, 25)):
            with self.subTest(writers=writers):
                # Until all have started, fewer writers are seen than there are, hence the tolerance; without the
                # curve it would be 100.
                self.assertLess(self.rate(writers, 48 // writers), 1.5 * limit)

    def test_writes_of_one_node_to_one_file_run_in_parallel(self) -> None:
        put(self.a / "w0", 10)  # inside the file: past its end the kernel takes one at a time
        self.command("lat write 20000", "reset")
        self.rate(8, 10, one_file=True)
        self.assertGreaterEqual(self.counters()["write_max_in_flight"], 4)

    @unittest.skipUnless(accuracy, "needs a quiet machine: --accuracy")
    def test_unlimited_is_fast(self) -> None:
        self.rate(1, 1000)  # touches the memory behind the files
        for writers in (1, 2):
            self.assertGreater(max(self.rate(writers, 1000 // writers, 4 * MIB) for _ in range(3)), 1500)


class Ending(unittest.TestCase):
    """However slowfs ends, nothing stays mounted."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="slowfs-test-")
        self.addCleanup(folder.cleanup)
        self.back, self.mount = Path(folder.name) / "back", Path(folder.name) / "mount"
        self.back.mkdir()
        self.mount.mkdir()
        self.addCleanup(unmount, self.mount)

    def test_a_signal_unmounts(self) -> None:
        process = subprocess.Popen([SLOWFS, "--foreground", self.back, self.mount])
        self.assertTrue(wait_until(self.mount.is_mount))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 0)
        self.assertFalse(self.mount.is_mount())

    def test_the_death_of_its_starter_unmounts(self) -> None:
        script = "import subprocess,sys,time; subprocess.Popen(sys.argv[1:]); time.sleep(60)"
        command = [sys.executable, "-c", script, str(SLOWFS), "--with-parent", str(self.back), str(self.mount)]
        starter = subprocess.Popen(command)
        self.assertTrue(wait_until(self.mount.is_mount))
        starter.kill()
        starter.wait()
        self.assertTrue(wait_until(lambda: not self.mount.is_mount()))

    def test_an_open_file_does_not_keep_it_mounted(self) -> None:
        process = subprocess.Popen([SLOWFS, "--foreground", self.back, self.mount])
        self.assertTrue(wait_until(self.mount.is_mount))
        held = os.open(self.mount / "held", os.O_CREAT | os.O_WRONLY)
        process.terminate()
        process.wait(10)
        self.assertFalse(self.mount.is_mount())
        self.assertEqual(error_of(os.close, held), "ENOTCONN")

    def test_bad_arguments_name_what_is_accepted(self) -> None:
        for arguments, expected in ((["-m", "some", self.back, self.mount], "none, cto or wb"),
                                    (["-t", "soon", self.back, self.mount], "a number"),
                                    (["-c", "wbw fast", self.back, self.mount], "wbw BYTES/S"),
                                    ([self.back], "BACKING and MOUNTPOINT")):
            done = subprocess.run([SLOWFS, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(expected, done.stderr)
            self.assertFalse(self.mount.is_mount())


def why_not() -> str | None:
    """What keeps slowfs from being tested here."""
    if not SLOWFS.exists():
        return f"{SLOWFS} is not there: ./dev build makes it where libfuse3 is installed"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or may not be opened"
    with tempfile.TemporaryDirectory(prefix="slowfs-test-") as top:
        back, mount = Path(top) / "back", Path(top) / "mount"
        back.mkdir()
        mount.mkdir()
        done = subprocess.run([SLOWFS, back, mount], capture_output=True, text=True, check=False)
        unmount(mount)
        return None if done.returncode == 0 else done.stderr.strip()


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"slowfs: skipped: {reason}")
        sys.exit(77)
    if accuracy:
        sys.argv.remove("--accuracy")
    unittest.main()
