# SPDX-License-Identifier: BSD-3-Clause
"""Takes back what a power loss may take: calls noted by tests/support/kill_library.cpp that were not made durable."""

import os
import pathlib
import shutil


def inodes(root):
    """Path of each folder and file by its inode."""
    paths = {root.stat().st_ino: root}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = pathlib.Path(folder) / name
            paths[path.lstat().st_ino] = path
    return paths


def not_durable(lines):
    """The calls that no later sync of their file or folder made durable, the last first."""
    synced, lost = set(), []
    for line in reversed(lines):
        kind, inode = line[0], line[1]
        if kind == "sync":
            synced.add(inode)
        elif (line[3] if kind in ("rename", "swap") else inode) not in synced:
            lost.append(line)
    return lost


def take_back_data(path, offset, length, size, saved):
    """The bytes before a write; beyond the size that the file had, zeros where something else made it longer."""
    old = saved.read_bytes() if saved else b""
    end = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(old)
        grown = max(offset, size)
        if end > offset + length:
            file.seek(grown)
            file.write(bytes(max(0, offset + length - grown)))
        elif end > size:
            file.truncate(max(size, 0))


def take_back(root, journal, random=None):
    """All that was not durable; with `random` any part of it: the names from some call on, what was appended to a file from
    some byte on, as file systems order it, and other writes whole, to the half, or not at all. Returns how many calls
    were taken back."""
    lines = [line.split("\t") for line in (journal / "journal").read_text().splitlines()]
    lost = not_durable(lines)
    is_data = [line[0] in ("data", "cut") for line in lost]
    names = len(lost) - sum(is_data)
    names = random.randint(0, names) if random else names
    made_anew, ended, count = {}, set(), 0  # ended: the files of which all that is earlier is kept

    def path_of(inode):
        return made_anew.get(inode) or inodes(root)[int(inode)]

    def saved(name):
        return None if name == "-" else journal / name

    for line, data in zip(lost, is_data):
        kind, inode = line[:2]
        if data:
            part = random.choice((0, 0.5, 1)) if random else 1  # that is lost, at the end
            if kind == "data" and int(line[2]) >= int(line[4]):
                part = 0 if inode in ended else part
                if part != 1:
                    ended.add(inode)
            if int(inode) not in inodes(root) or part == 0:
                continue
            if kind == "cut":
                with path_of(inode).open("r+b") as file:
                    file.seek(int(line[2]))
                    file.write(saved(line[4]).read_bytes() if saved(line[4]) else b"")
                    file.truncate(int(line[3]))
            else:
                offset, length, size = map(int, line[2:5])
                kept = 0 if part == 1 else length // 2 if length < 1024 else length // 2 // 512 * 512
                old = saved(line[5])
                if kept and old:
                    trimmed = journal / "trimmed"
                    trimmed.write_bytes(old.read_bytes()[kept:])
                    old = trimmed
                take_back_data(path_of(inode), offset + kept, length - kept, max(size, offset + kept) if kept else size, old)
        elif names == 0:
            continue
        else:
            names -= 1
            path = path_of(inode) / line[2]
            if kind == "create":
                path.unlink()
            elif kind == "mkdir":
                shutil.rmtree(path)
            elif kind == "unlink":
                os.link(saved(line[3]), path)
            elif kind == "rmdir":
                path.mkdir()
                made_anew[line[3]] = path
            else:
                target = path_of(line[3]) / line[4]
                if kind == "swap":
                    between = root / "between"
                    target.rename(between), path.rename(target), between.rename(path)
                else:
                    target.rename(path)
                    if line[5] == "folder":
                        target.mkdir()
                    elif saved(line[5]):
                        os.link(saved(line[5]), target)
        count += 1
    return count
