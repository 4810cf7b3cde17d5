"""Why a Java program cannot be had here: one sentence for a person, with what would help."""

from __future__ import annotations


class JvmError(Exception):
    """There is no Java that will do, or the jars cannot be fetched; nothing was changed."""

    exit_code = 1
