"""A click: what it is, how it is written as JSON, and what is wrong with something that is none."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import NamedTuple

CAMPAIGNS = range(1, 11)
PUBLISHERS = range(1, 6)
COUNTRIES = {
    "Amsterdam": "NL", "Bengaluru": "IN", "Berlin": "DE", "Buenos Aires": "AR", "Cairo": "EG", "Cape Town": "ZA",
    "Chicago": "US", "Copenhagen": "DK", "Delhi": "IN", "Gothenburg": "SE", "Istanbul": "TR", "Jakarta": "ID",
    "Lagos": "NG", "Lima": "PE", "London": "GB", "Madrid": "ES", "Melbourne": "AU", "Mexico City": "MX",
    "Mumbai": "IN", "Nairobi": "KE", "New York": "US", "Osaka": "JP", "Oslo": "NO", "Paris": "FR", "Rome": "IT",
    "San Francisco": "US", "São Paulo": "BR", "Seoul": "KR", "Stockholm": "SE", "Toronto": "CA", "Warsaw": "PL",
}  # fmt: skip
"""City -> country."""
PLATFORMS = {
    "Windows": ("10", "11"),
    "macOS": ("13.6", "14.5", "15.1"),
    "Linux": ("5.15", "6.1", "6.8"),
    "Android": ("12", "13", "14"),
    "iOS": ("16.7", "17.5", "18.0"),
}
BROWSERS = ("Chrome", "Edge", "Firefox", "Opera", "Safari")


class Click(NamedTuple):
    """Somebody clicked on an advertisement. `timestamp`: milliseconds since 1970."""

    uuid: str
    campaign_id: int
    pub_id: int
    timestamp: int
    ip: str
    city: str
    country: str
    browser: str
    platform: str
    platform_version: str


JSON_NAMES = (
    "uuid",
    "campaignId",
    "pubId",
    "timestamp",
    "ip",
    "city",
    "country",
    "browser",
    "platform",
    "platformVersion",
)
"""The fields' names in JSON, in the order of `Click`."""
TEXTS = (*JSON_NAMES[:1], *JSON_NAMES[4:])
LONGEST_TEXT = 100
END_OF_TIME = 253_402_300_800_000
"""The year 10000, which not every store knows."""
_values = itemgetter(*JSON_NAMES)
_texts = itemgetter(*TEXTS)
_is_uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class BadClickError(ValueError):
    """Why this is no click, in a few words for the dead letters."""


def read_click(value: bytes | None) -> Click:
    """The click in a record's value; BadClickError says why it is none."""
    try:
        fields = json.loads(value or b"")
        click = Click(*_values(fields))
    except KeyError as error:
        raise BadClickError(f"field {error.args[0]} is missing") from None
    except TypeError:
        raise BadClickError("not a JSON object") from None
    except (ValueError, RecursionError) as error:
        raise BadClickError(f"not JSON: {error}") from None
    try:
        whole = "".join(_texts(fields))
    except TypeError:
        whole = ""
    if not (whole.isprintable() and 0 < len(whole) <= LONGEST_TEXT):  # seldom: one by one, to find the bad one
        for name, text in zip(TEXTS, _texts(fields), strict=True):
            if type(text) is not str or not text.isprintable():
                raise BadClickError(f"{name} is not a text: {text!r}")
            if len(text) > LONGEST_TEXT:
                raise BadClickError(f"{name} is longer than {LONGEST_TEXT} characters")
    if not _is_uuid(click.uuid):
        raise BadClickError(f"uuid is none: {click.uuid!r}")
    if type(click.campaign_id) is not int or click.campaign_id not in CAMPAIGNS:
        raise BadClickError(f"unknown campaign {click.campaign_id!r}: they go from 1 to {CAMPAIGNS[-1]}")
    if type(click.pub_id) is not int or click.pub_id not in PUBLISHERS:
        raise BadClickError(f"unknown publisher {click.pub_id!r}: they go from 1 to {PUBLISHERS[-1]}")
    if type(click.timestamp) is not int or not 0 <= click.timestamp < END_OF_TIME:
        raise BadClickError(f"timestamp is not milliseconds since 1970: {click.timestamp!r}")
    if click.city not in COUNTRIES:
        raise BadClickError(f"unknown city {click.city!r}")
    return click


def write_click(click: Click) -> bytes:
    return json.dumps(dict(zip(JSON_NAMES, click, strict=True)), ensure_ascii=False).encode()
