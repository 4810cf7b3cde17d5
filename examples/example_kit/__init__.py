"""What all examples share, so that each of them holds only what it is about.

    def main(argv: list[str]) -> int:
        options = options_parser("word-count", __doc__, seconds=20, rate=1000).parse_args(argv)
        with running(options) as run:
            create_topic(run.bootstrap, "words", partitions=3)
            run.say("the first words are on their way")
            ...
            run.report({"words counted": 1234})
        return 0

An example is a folder with `example.py`, whose docstring begins with the line that `millstream example list` shows and
which has `main(argv) -> int`. The folder's name is the example's with `_` for `-`. The folder `examples` is on the
path, so that an example imports its own files as `word_count.splitter` and this package as `example_kit`. Like the
examples, this package uses only Millstream's public surface.
"""

from example_kit.cluster import started_cluster
from example_kit.errors import ExampleError
from example_kit.options import options_parser
from example_kit.processes import Child, parent_says_stop, tell
from example_kit.run import Run, running
from example_kit.topics import create_topic

__all__ = [
    "Child",
    "ExampleError",
    "Run",
    "create_topic",
    "options_parser",
    "parent_says_stop",
    "running",
    "started_cluster",
    "tell",
]
