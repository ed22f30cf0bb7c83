# SPDX-License-Identifier: Apache-2.0
"""Things that are made once for all workers of a test run, or once on this machine."""
import fcntl
from contextlib import contextmanager


@contextmanager
def locked(path):
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def once(folder, name, make):
    """The folder `name` in folder, filled by make(it) by whoever comes first. A maker that failed
    leaves no mark: the next one starts over in a fresh folder."""
    import shutil
    target, mark = folder / name, folder / f"{name}.made"
    with locked(folder / f"{name}.lock"):
        if not mark.exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            make(target)
            mark.touch()
    return target
