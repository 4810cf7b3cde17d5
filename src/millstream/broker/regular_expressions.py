"""Regular expressions that clients send, in RE2's syntax: subscriptions (KIP-848) and filters, for whole names.

Apache Kafka's coordinator uses RE2/J: no back-references, no look-around, and matching in time linear in the name, so
that no client can keep the server busy with an expression. RE2 itself does the same here; it is loaded when the first
expression arrives.
"""

from __future__ import annotations

MAX_PROGRAM_BYTES = 1 << 20
"""What one compiled expression may take; RE2 refuses larger ones."""


class InvalidRegularExpression(ValueError):  # noqa: N818 - Kafka's name for it
    """The expression is not one that RE2 accepts, or larger than is allowed here."""


class Pattern:
    """A compiled expression."""

    def __init__(self, expression: str) -> None:
        import re2  # type: ignore[import-untyped]  # it ships no types

        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_PROGRAM_BYTES
        self.expression = expression
        try:
            self._compiled = re2.compile(expression, options=options)
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise InvalidRegularExpression(f"{expression!r} is not a regular expression: {text}") from error

    def matches(self, name: str) -> bool:
        """Whether the whole name is in the expression's language."""
        return self._compiled.fullmatch(name) is not None
