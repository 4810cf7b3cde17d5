"""One file for each API: it registers its handler, the request's key and its versions in one line.

A handler's docstring is its contract: what it does, where it departs from Apache Kafka, what each version brought.
Importing `load_all` registers them all; what is not here, the server does not speak.
"""

from importlib import import_module
from pkgutil import iter_modules


def load_all() -> None:
    """Imports every handler, which registers it."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
