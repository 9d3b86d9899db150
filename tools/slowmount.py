"""slowfs, mounted for the time of a block: see tools/slowfs/README.md."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import launch
from launch import Missing


class SlowFs:
    """What is mounted on `mount_point`."""

    def __init__(self, mount_point: Path) -> None:
        self.mount_point = mount_point

    def command(self, *lines: str) -> None:
        (self.mount_point / ".slowfs-control").write_text("\n".join(lines) + "\n")

    def bytes_written(self) -> int:
        text = (self.mount_point / ".slowfs-stats").read_text()
        match = re.search(r"^write_bytes (\d+)", text, re.MULTILINE)
        return int(match[1]) if match else 0


def why_not() -> str | None:
    """Why nothing can be mounted here; None when it can be tried."""
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        return None
    return "the slow file system needs /dev/fuse, which is missing or may not be opened"


def is_mounted(path: Path) -> bool:
    try:
        return path.is_mount()
    except OSError:
        return True  # its process is gone and left it


def unmount(mount_point: Path) -> None:
    """Takes away whatever is mounted there, also what a killed process left."""
    if is_mounted(mount_point):
        command = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
        subprocess.run([*command, str(mount_point)], stderr=subprocess.DEVNULL, check=False)


@contextmanager
def slowfs(backing: Path, mount_point: Path) -> Iterator[SlowFs]:
    """Shows `backing` at `mount_point`, however the block ends; also when this process is killed slowfs ends by itself.
    Raises Missing when it cannot be built or mounted here."""
    binary = launch.BUILD / "bin" / "slowfs"
    if not binary.exists():
        raise Missing(f"{binary} is not there: install libfuse3-dev and run ./dev build")
    unmount(mount_point)
    for directory in (backing, mount_point):
        directory.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([binary, "--with-parent", backing, mount_point], stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while not mount_point.is_mount():
            if process.poll() is not None:
                raise Missing(process.stderr.read().strip())
            time.sleep(0.02)
        yield SlowFs(mount_point)
    finally:
        launch.stop(process)
        process.stderr.close()
        unmount(mount_point)
