"""Unpacking an archive into a new folder, so that nothing outside the folder is touched."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from lastarm.errors import LastarmError


class UnsafeArchive(LastarmError, ValueError):
    """An archive holds something that is not unpacked. Nothing outside its folder was changed."""


def unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Unpack `tar` into `folder`, which is empty and ours alone.

    It does what `extractall(filter="tar")` does, which Python has only since 3.11.4, and is
    stricter:

    - A name leads into the folder: it is not absolute and has no "..".
    - There are plain files, folders, symbolic links, and second names of files of this archive.
      A device, a pipe or anything else is refused.
    - A symbolic link may lead anywhere, such as to the user's own data, but nothing is written
      through one: links are made when all else is there. No name is taken twice.
    - Nobody else may write to a file, whatever its mode was, and no file runs as its owner.
    """
    links: list[tuple[Path, str]] = []
    entries: list[tuple[Path, tarfile.TarInfo]] = []
    for entry in tar:
        path = folder / _inside(entry.name)
        if entry.isdir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if entry.issym():
            links.append((path, entry.linkname))
            continue
        if entry.islnk():
            os.link(folder / _inside(entry.linkname), path)
            continue
        if entry.isreg():
            _copy(tar, entry, path)
        elif not entry.isdir():
            raise UnsafeArchive(f"{entry.name!r} is neither a file, a folder nor a link")
        entries.append((path, entry))
    for path, target in links:
        path.symlink_to(target)
    for path, entry in reversed(entries):  # a folder after what is in it
        path.chmod(entry.mode & 0o755)
        os.utime(path, (entry.mtime, entry.mtime))


def _inside(name: str) -> PurePosixPath:
    """The name of an entry, if it leads into the folder.

    >>> _inside("state/weights")
    PurePosixPath('state/weights')
    >>> _inside("state/../../weights")
    Traceback (most recent call last):
    lastarm.trainers.unpacking.UnsafeArchive: 'state/../../weights' does not lead into the folder
    """
    path = PurePosixPath(name)
    foreign = os.name == "nt" and set(name) & set("\\:")
    if path.is_absolute() or not path.parts or ".." in path.parts or foreign:
        raise UnsafeArchive(f"{name!r} does not lead into the folder")
    return path


def _copy(tar: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(entry)
    assert source is not None
    with source, path.open("xb") as file:
        shutil.copyfileobj(source, file)
