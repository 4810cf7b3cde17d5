"""What can be said about a SQL statement without Spark: whether it is a query, and which tables it names.

Spark has the last word. What the parser here does not understand is left to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from millstream.pipelines.description.fields import meant


def table_mistakes(sql: str, known: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Line in the statement and what is wrong. Names with a dot are the metastore's, which is not asked here."""
    from sqlglot import exp, parse  # half of the time it takes to read a pipeline

    if not sql.strip():
        yield 1, "there is no statement here: write a SELECT"
        return
    logger = logging.getLogger("sqlglot")
    disabled = logger.disabled
    logger.disabled = True  # it warns of statements that it leaves alone, which is what is wanted
    try:
        trees = [tree for tree in parse(sql, dialect="spark") if tree is not None]
    except Exception:
        return
    finally:
        logger.disabled = disabled
    if len(trees) > 1:
        yield 1, "there are several statements here: write one SELECT for each step"
        return
    for tree in trees:
        if isinstance(tree, exp.DML | exp.DDL | exp.Drop | exp.Merge) and not isinstance(tree, exp.Query):
            yield 1, f"a step is a SELECT; {type(tree).__name__.upper()} is not possible here"
            return
        inside = {name.alias_or_name.lower() for name in tree.find_all(exp.CTE)}
        allowed = inside | {name.lower() for name in known}
        for table in tree.find_all(exp.Table):
            if isinstance(table.this, exp.Identifier) and not table.db and table.name.lower() not in allowed:
                close = meant(table.name, known) or f"; there are {', '.join(known)}"
                message = f"there is no source or table `{table.name}`{close}"
                yield int(table.this.meta.get("line", 1)), f"{message} (one of the metastore is written DATABASE.TABLE)"
