"""Regular expressions of subscriptions (`SubscribedTopicRegex`), in RE2's syntax, matched against whole topic names.

Clients write them for RE2/J, which Apache Kafka's coordinator uses: no back-references, no look-around, and matching in
time linear in the name. Python's `re` has another syntax and can be made to run for hours, so expressions are parsed
here and run as an automaton: parser (`_Parser`) -> nodes -> `_Program` -> states built on demand (`TopicPattern`).

Only topic names are ever matched, so a set of characters is a bit mask over the 65 characters a topic name may have.
What can match nothing but other characters is accepted and matches nothing. An expression may be as large as
`_MAX_INSTRUCTIONS`; the states kept are bounded by `_MAX_STATES`.

Not here: when expressions are resolved and where the result is kept (`consumer_subscriptions`).
"""

from __future__ import annotations

import re
import string
import unicodedata

_ALPHABET = string.ascii_letters + string.digits + "._-"
_BITS = {character: 1 << index for index, character in enumerate(_ALPHABET)}
_ALL = (1 << len(_ALPHABET)) - 1
_MAX_REPEAT = 1_000
_MAX_INSTRUCTIONS = 10_000
_MAX_NODES = 20_000
"""Counted each time a node is compiled: an empty node within repetitions costs time, though it adds no instruction."""
_MAX_STATES = 1_000
_MAX_DEPTH = 100


def _mask(characters: str) -> int:
    return sum(_BITS[character] for character in set(characters) if character in _BITS)


_WORD = _mask(string.ascii_letters + string.digits + "_")
_PERL = {"d": _mask(string.digits), "w": _WORD, "s": 0}
_POSIX = {
    "alnum": _mask(string.ascii_letters + string.digits),
    "alpha": _mask(string.ascii_letters),
    "ascii": _ALL,
    "blank": 0,
    "cntrl": 0,
    "digit": _mask(string.digits),
    "graph": _ALL,
    "lower": _mask(string.ascii_lowercase),
    "print": _ALL,
    "punct": _mask("._-"),
    "space": 0,
    "upper": _mask(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": _mask(string.hexdigits),
}
_SCRIPTS = {"Any": _ALL, "Latin": _mask(string.ascii_letters), "Common": _mask(string.digits + "._-")}
_OTHER_SCRIPTS = re.compile(
    "Arabic|Armenian|Bengali|Bopomofo|Cyrillic|Devanagari|Ethiopic|Georgian|Greek|Gujarati|Han|Hangul|Hebrew|Hiragana|"
    "Inherited|Kannada|Katakana|Khmer|Lao|Malayalam|Mongolian|Myanmar|Oriya|Sinhala|Syriac|Tamil|Telugu|Thai|Tibetan"
)
_CATEGORIES = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_REPEAT = re.compile(r"\{([0-9]{1,5})(,([0-9]{1,5})?)?\}")
_GROUP_NAME = re.compile(r"[A-Za-z0-9_]+")


class InvalidRegularExpression(ValueError):  # noqa: N818 - Kafka's name for it
    """The expression is not one that RE2 accepts, or larger than is allowed here."""


# --- nodes: tuples, the first element says which -------------------------------------------------------------------
#   ("set", mask)   ("cat", nodes)   ("alt", nodes)   ("repeat", node, low, high or None)   ("assert", name)

_Node = tuple[object, ...]


class _Flags:
    __slots__ = ("ignore_case",)

    def __init__(self, ignore_case: bool = False) -> None:
        self.ignore_case = ignore_case


class _Parser:
    """Recursive descent over RE2's grammar. Greediness, captures and line modes make no difference to a full match."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()

    def parse(self) -> _Node:
        node = self._alternation(_Flags())
        if self._at < len(self._text):
            raise InvalidRegularExpression("unexpected )")
        return node

    def _alternation(self, flags: _Flags) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InvalidRegularExpression("nested too deeply")
        branches = [self._concatenation(flags)]
        while self._take("|"):
            branches.append(self._concatenation(flags))
        self._depth -= 1
        return branches[0] if len(branches) == 1 else ("alt", tuple(branches))

    def _concatenation(self, flags: _Flags) -> _Node:
        items: list[_Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._take("\\Q"):
                end = self._text.find("\\E", self._at)
                quoted = self._text[self._at :] if end < 0 else self._text[self._at : end]
                self._at = len(self._text) if end < 0 else end + 2
                items.extend(self._literal(character, flags) for character in quoted)
                if items:
                    items.append(self._repeated(items.pop()))
            else:
                atom = self._atom(flags)
                if atom is not None:
                    items.append(self._repeated(atom))
        return items[0] if len(items) == 1 else ("cat", tuple(items))

    def _atom(self, flags: _Flags) -> _Node | None:
        """One unit, or None for a change of flags."""
        character = self._text[self._at]
        if character in "*+?" or (character == "{" and _REPEAT.match(self._text, self._at)):
            raise InvalidRegularExpression(f"missing argument to repetition operator: {character}")
        self._at += 1
        if character == "(":
            return self._group(flags)
        if character == "[":
            return "set", self._class(flags)
        if character == ".":
            return "set", _ALL
        if character == "^":
            return "assert", "begin"
        if character == "$":
            return "assert", "end"
        if character == "\\":
            return self._escape(flags)
        return self._literal(character, flags)

    def _repeated(self, node: _Node) -> _Node:
        """What follows an atom. One operator (and its lazy mark) only: RE2 refuses `a**`."""
        low: int = 0
        high: int | None = None
        if self._take("?"):
            high = 1
        elif self._take("+"):
            low = 1
        elif not self._take("*"):
            match = _REPEAT.match(self._text, self._at)
            if match is None:
                return node
            low = int(match[1])
            high = low if match[2] is None else None if match[3] is None else int(match[3])
            if max(low, high or 0) > _MAX_REPEAT or (high is not None and high < low):
                raise InvalidRegularExpression(f"invalid repeat count: {match[0]}")
            self._at = match.end()
        self._take("?")
        if self._at < len(self._text) and (self._text[self._at] in "*+?" or _REPEAT.match(self._text, self._at)):
            raise InvalidRegularExpression("invalid nested repetition operator")
        return "repeat", node, low, high

    def _group(self, flags: _Flags) -> _Node | None:
        inner = _Flags(flags.ignore_case)
        if self._take("?"):
            if self._take("P<") or (self._take("<") and not self._text.startswith(("=", "!"), self._at)):
                self._group_name()
            elif not self._take(":") and self._set_flags(inner):
                flags.ignore_case = inner.ignore_case
                return None
        node = self._alternation(inner)
        if not self._take(")"):
            raise InvalidRegularExpression("missing closing )")
        return node

    def _group_name(self) -> None:
        end = self._text.find(">", self._at)
        name = self._text[self._at : end]
        if end < 0 or not _GROUP_NAME.fullmatch(name) or name in self._names:
            raise InvalidRegularExpression(f"invalid named capture: {name}")
        self._names.add(name)
        self._at = end + 1

    def _set_flags(self, flags: _Flags) -> bool:
        """Reads `i`, `m`, `s`, `U` and a minus. True: they hold for the rest. False: for a group that opens here."""
        value, seen = True, False
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character in "imsU":
                seen = True
                if character == "i":
                    flags.ignore_case = value
            elif character == "-" and value:
                value, seen = False, False
            elif character in ":)" and (seen or value):
                return character == ")"
            else:
                break
        raise InvalidRegularExpression("invalid or unsupported Perl syntax: (?")

    def _escape(self, flags: _Flags) -> _Node:
        character = self._peek("trailing backslash")
        if character in "AzbB":
            self._at += 1
            return "assert", {"A": "begin", "z": "end", "b": "boundary", "B": "inside"}[character]
        mask = self._class_escape(flags)
        return ("set", mask) if mask is not None else self._literal(self._escaped_character(), flags)

    def _class_escape(self, flags: _Flags) -> int | None:
        """`\\d`, `\\pL`, `\\p{Greek}` and their negations, just behind the backslash."""
        character = self._peek("trailing backslash")
        if character.lower() in _PERL:
            self._at += 1
            mask = _PERL[character.lower()]
            return _ALL & ~mask if character.isupper() else mask
        if character not in "pP":
            return None
        self._at += 1
        name = self._peek("invalid character class range")
        self._at += 1
        if name == "{":
            end = self._text.find("}", self._at)
            name = self._text[self._at : end] if end >= 0 else ""
            self._at = end + 1
        negated = (character == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name in _SCRIPTS:
            mask = _SCRIPTS[name]
        elif _CATEGORIES.fullmatch(name):
            mask = _mask("".join(each for each in _ALPHABET if unicodedata.category(each).startswith(name)))
        elif _OTHER_SCRIPTS.fullmatch(name):
            mask = 0
        else:
            raise InvalidRegularExpression(f"invalid character class range: \\p{{{name}}}")
        mask = _folded(mask) if flags.ignore_case else mask
        return _ALL & ~mask if negated else mask

    def _escaped_character(self) -> str:
        character = self._peek("trailing backslash")
        self._at += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            match = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})").match(self._text, self._at)
            if match is not None and int(match[1] or match[2], 16) <= 0x10FFFF:
                self._at = match.end()
                return chr(int(match[1] or match[2], 16))
        elif character in "01234567":
            match = re.compile(r"[0-7]{0,2}").match(self._text, self._at)
            digits = character + (match[0] if match else "")
            if character == "0" or len(digits) > 1:
                self._at += len(digits) - 1
                return chr(int(digits, 8))
        elif character == "_" or not character.isalnum():
            return character
        raise InvalidRegularExpression(f"invalid escape sequence: \\{character}")

    def _class(self, flags: _Flags) -> int:
        """A bracket expression, just behind its bracket."""
        negated = self._take("^")
        mask, first = 0, True
        while first or not self._take("]"):
            character = self._peek("missing closing ]")
            first = False
            if self._text.startswith("[:", self._at) and (end := self._text.find(":]", self._at)) > 0:
                name = self._text[self._at + 2 : end]
                if name.removeprefix("^") not in _POSIX:
                    raise InvalidRegularExpression(f"invalid character class range: [:{name}:]")
                self._at = end + 2
                posix = _POSIX[name.removeprefix("^")]
                posix = _folded(posix) if flags.ignore_case else posix
                mask |= _ALL & ~posix if name.startswith("^") else posix
                continue
            if character == "\\":
                self._at += 1
                perl = self._class_escape(flags)
                if perl is not None:
                    mask |= perl
                    continue
                low = self._escaped_character()
            else:
                low = self._class_character()
            high = low
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                self._peek("missing closing ]")
                high = self._escaped_character() if self._take("\\") else self._class_character()
                if high < low:
                    raise InvalidRegularExpression(f"invalid character class range: {low}-{high}")
            span = _mask("".join(each for each in _ALPHABET if low <= each <= high))
            mask |= _folded(span) if flags.ignore_case else span
        return _ALL & ~mask if negated else mask

    def _class_character(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _literal(self, character: str, flags: _Flags) -> _Node:
        mask = _mask(character)
        return "set", _folded(mask) if flags.ignore_case else mask

    def _peek(self, otherwise: str) -> str:
        if self._at >= len(self._text):
            raise InvalidRegularExpression(otherwise)
        return self._text[self._at]

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False


def _folded(mask: int) -> int:
    return mask | _mask("".join(character.swapcase() for character in _ALPHABET if mask & _BITS[character]))


# --- the automaton ---------------------------------------------------------------------------------------------------


class _Program:
    """Instructions: (kind, argument, next, other). `split` goes both ways, `set` eats a character, `assert` tests."""

    def __init__(self, node: _Node) -> None:
        self.code: list[tuple[str, object, int, int]] = []
        self._nodes = 0
        self.match = self._add("match")
        self.start = self._compile(node, self.match)

    def _add(self, kind: str, argument: object = None, following: int = -1, other: int = -1) -> int:
        if len(self.code) >= _MAX_INSTRUCTIONS:
            raise InvalidRegularExpression("expression is too large")
        self.code.append((kind, argument, following, other))
        return len(self.code) - 1

    def _compile(self, node: _Node, following: int) -> int:
        """The address of code for the node that goes on at `following`: built from its end."""
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise InvalidRegularExpression("expression is too large")
        kind, argument = node[0], node[1]
        if kind == "set":
            return self._add("set", argument, following)
        if kind == "assert":
            return self._add("assert", argument, following)
        if kind == "cat":
            assert isinstance(argument, tuple)
            for item in reversed(argument):
                following = self._compile(item, following)
            return following
        if kind == "alt":
            assert isinstance(argument, tuple)
            start = self._compile(argument[-1], following)
            for branch in reversed(argument[:-1]):
                start = self._add("split", None, self._compile(branch, following), start)
            return start
        assert isinstance(argument, tuple)
        low, high = node[2], node[3]
        assert isinstance(low, int)
        return self._compile_repeat(argument, low, high if isinstance(high, int) else None, following)

    def _compile_repeat(self, node: _Node, low: int, high: int | None, following: int) -> int:
        start = following
        if high is None:
            start = self._add("split", None, -1, following)
            body = self._compile(node, start)
            self.code[start] = ("split", None, body, following)
        else:
            for _ in range(high - low):
                start = self._add("split", None, self._compile(node, start), following)
        for _ in range(low):
            start = self._compile(node, start)
        return start


_State = tuple[frozenset[int], bool, bool]
"""Where the automaton may be, whether nothing was read yet, and whether a word character was read last."""


class TopicPattern:
    """A compiled expression. `matches` takes time linear in the length of the name."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._program = _Program(_Parser(expression).parse())
        self._begin: _State = (frozenset((self._program.start,)), True, False)
        self._next: dict[tuple[_State, str], _State] = {}
        self._accepts: dict[_State, bool] = {}

    def matches(self, topic: str) -> bool:
        """Whether the whole name is in the expression's language."""
        state = self._begin
        for character in topic:
            following = self._next.get((state, character))
            if following is None:
                following = self._step(state, character)
                if len(self._next) >= _MAX_STATES * len(_ALPHABET):
                    self._next.clear()
                self._next[state, character] = following
            if not following[0]:
                return False
            state = following
        accepts = self._accepts.get(state)
        if accepts is None:
            if len(self._accepts) >= _MAX_STATES:
                self._accepts.clear()
            accepts = self._accepts[state] = self._program.match in self._closure(state, at_end=True, word_next=False)
        return accepts

    def _step(self, state: _State, character: str) -> _State:
        bit = _BITS.get(character, 0)
        word = bool(bit & _WORD)
        places: set[int] = set()
        for place in self._closure(state, at_end=False, word_next=word):
            kind, mask, following, _ = self._program.code[place]
            if kind == "set" and isinstance(mask, int) and mask & bit:
                places.add(following)
        return frozenset(places), False, word

    def _closure(self, state: _State, *, at_end: bool, word_next: bool) -> set[int]:
        """Every place that can be reached without reading a character."""
        places, at_begin, word_last = state
        boundary = word_last != word_next
        holds = {"begin": at_begin, "end": at_end, "boundary": boundary, "inside": not boundary}
        seen: set[int] = set()
        open_places = list(places)
        while open_places:
            place = open_places.pop()
            if place in seen:
                continue
            seen.add(place)
            kind, argument, following, other = self._program.code[place]
            if kind == "split":
                open_places += (following, other)
            elif kind == "assert" and holds[str(argument)]:
                open_places.append(following)
        return seen
