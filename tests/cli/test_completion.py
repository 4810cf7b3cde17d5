"""What the shell is told when somebody presses the tab key."""

import os
import subprocess

import pytest

from support.cli import COMMAND


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("millstream to", ["topic"]),
        ("millstream topic con", ["consume"]),
        ("millstream topic consume --fo", ["--follow", "--format"]),
        ("millstream gr", ["group", "graduate"]),
    ],
)
def test_completion(words: str, offered: list[str]) -> None:
    environment = {"_MILLSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [COMMAND[0], "-c", "import sys; sys.argv[0] = 'millstream'; from millstream.cli import main; main()"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    assert done.stdout.split() == offered
