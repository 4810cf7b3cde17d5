"""The open segment files of the whole data folder: a bounded number of them, the least recently used one is let go.

Thousands of partitions would otherwise need thousands of descriptors. A file that is let go is closed as soon as no
slice refers to it; whoever needs it again opens it again. A log that was never touched has nothing open.
"""

import resource
from collections import OrderedDict

from millstream.log.filesystem import File, FileSystem

FEWEST, MOST = 64, 8192


def affordable() -> int:
    """Half of what the process may have open, within bounds: the rest is for sockets."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else min(max(allowed // 2, FEWEST), MOST)


class OpenFiles:
    """Files by path."""

    def __init__(self, file_system: FileSystem, limit: int | None = None) -> None:
        """At most `limit` files; without it as many as are affordable."""
        self.file_system = file_system
        self._limit = affordable() if limit is None else limit
        self._files: OrderedDict[str, File] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: str) -> File:
        files = self._files
        file = files.get(path)
        if file is None:
            file = files[path] = self.file_system.open(path)
            if len(files) > self._limit:
                files.popitem(last=False)
        else:
            files.move_to_end(path)
        return file

    def forget(self, path: str) -> None:
        """The path now means another file or none."""
        self._files.pop(path, None)

    def forget_under(self, directory: str) -> None:
        """The folder was renamed or is going away."""
        for path in [path for path in self._files if path.startswith(directory + "/")]:
            del self._files[path]

    def renamed(self, source: str, target: str) -> None:
        """The same file has a new name."""
        file = self._files.pop(source, None)
        self._files.pop(target, None)
        if file is not None:
            self._files[target] = file
