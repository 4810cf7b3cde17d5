"""Mistakes in a YAML file: each with its line, its field, and what would be right."""

from pathlib import Path

import pytest

from support.descriptions import mistakes

AROUND = "pipeline: p\nsource: {topic: t}\nsinks: [console: true]\n"


def one(folder: Path, text: str) -> str:
    (found,) = mistakes(folder, text)
    return found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("sorce: {topic: t}", "4: sorce: there is no such field; did you mean `source`?"),
        ("colour: blue", "4: colour: there is no such field; there are pipeline, description, source, sources, tables"),
        (
            "mode: realtime",
            "4: mode: 'realtime' is not possible: write `auto`, `real-time`, `micro-batch` or `once`; "
            "did you mean `real-time`?",
        ),
        ("every: 5 parsecs", "4: every: '5 parsecs' is not a length of time: write 500ms, 30s, 5 minutes or 1h30m"),
        ("real_time_batch: 1s", "4: real_time_batch: '1s' is too small: it must be at least 5"),
        ("steps: filter", "4: steps: 'filter' is not possible: this must be a list of steps"),
        ("steps:\n  filter: a", "5: steps: a mapping is not possible: this must be a list of steps"),
        ("tables: [a]", "4: tables: a list is not possible"),
        (
            "tables: {a-b: {topic: t}}",
            "4: tables.a-b: 'a-b' cannot be a table's name in SQL: use letters, digits and `_`",
        ),
        (
            "tables: {a: {}}",
            "4: tables.a: give one of `topic`, `database` (with `table` or `query`), `table` or `files`",
        ),
        ("tables: {a: {table: t, query: q}}", "4: tables.a: `query` is for a `database`"),
        ("tables: {a: {database: 'mysql://h/d'}}", "4: tables.a: a database needs either `table` or `query`"),
        ("tables: {stream: {topic: t}}", "4: tables.stream: `stream` is already the name of a source: call the table"),
        ("spark: {a: [b]}", "4: spark.a: a list is not possible: this must be a text"),
        (
            "back_pressure: {max_records: lots}",
            "4: back_pressure.max_records: 'lots' is not possible: this must be a whole number above 0",
        ),
        (
            "back_pressure:\n  adaptive: maybe",
            "5: back_pressure.adaptive: 'maybe' is not possible: this must be `true`",
        ),
        (
            "back_pressure: {max_record: 5}",
            "4: back_pressure.max_record: there is no such field; did you mean `max_records`?",
        ),
        ("dead_letters: bad letters", "4: dead_letters: 'bad letters' cannot be a topic's name: letters, digits, `.`,"),
        ("dead_letters: {}", "4: dead_letters: an empty mapping is not possible: this must be a topic"),
        ("on_error:", "4: on_error: nothing is not possible: write `dead-letter` or `fail`"),
        ("sources: {a: {topic: a}}", "1: give either `source` or `sources`"),
        ("pipeline: q", "4: pipeline: this stands twice, here and in line 1"),
        ("description: ${WHAT}", "4: description: WHAT is not set in the environment"),
    ],
)
def test_in_the_pipeline(tmp_path: Path, text: str, wrong: str) -> None:
    assert one(tmp_path, AROUND + text + "\n").startswith(wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("sources: {a: {topic: a}}\nsinks: [console: true]", "1: pipeline: this field must be there: Its name"),
        (
            "pipeline: a b\nsource: {topic: a}\nsinks: [console: true]",
            "1: pipeline: 'a b' is not possible: letters, digits",
        ),
        ("pipeline: a\nsinks: [console: true]", "1: give either `source` or `sources`"),
        ("pipeline: a\nsource: {topic: a}", "1: sinks: this field must be there: Where the rows go"),
        ("pipeline: a\nsource: {topic: a}\nsinks: []", "3: sinks: at least one must be there"),
        ("pipeline: a\nsource:\nsinks: [console: true]", "1: give either `source` or `sources`"),
        ("- pipeline: a", "1: a pipeline is a list of fields (`pipeline: NAME`, `source: …`), not a list"),
        ("pipeline", "1: a pipeline is a list of fields (`pipeline: NAME`, `source: …`), not 'pipeline'"),
        ("", "1: there is no pipeline in this file"),
        ("# later\n---\n", "1: there is no pipeline in this file"),
    ],
)
def test_in_the_whole(tmp_path: Path, text: str, wrong: str) -> None:
    assert one(tmp_path, text).startswith(wrong)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("topic", "2: source: 'topic' is not possible: give its fields"),
        (
            "{tpic: t}",
            "2: source: this does not say what it is: one of the fields topic, database, files, tail, generate, "
            "topics, pattern must be there; did you mean `topic`?",
        ),
        ("{url: t}", "2: source: this does not say what it is: one of the fields"),
        ("{topic: t, valu: text}", "2: source.valu: there is no such field; did you mean `value`?"),
        ("{topic: a b}", "2: source.topic: 'a b' cannot be a topic's name"),
        ("{topics: [a, b c]}", "2: source.topics[1]: 'b c' cannot be a topic's name"),
        ("{topic: t, topics: [a]}", "2: source.topics: there is no such field; did you mean `topic`?"),
        ("{topic: t, pattern: x}", "2: source: give either `topic` or `pattern`"),
        ("{pattern: '('}", "2: source.pattern: '(' is not a regular expression"),
        ("{topic: t, value: avro}", "2: source: values in avro need their `schema`: a .avsc file"),
        ("{topic: t, value: json-schema}", "2: source: values in json-schema need their `schema`: a .json file"),
        ("{topic: t, schema: x.avsc}", "2: source.schema: there is no file "),
        ("{topic: t, start: erliest}", "2: source.start: 'erliest' is no position: write earliest, latest, a moment"),
        (
            "{topic: t, start: [5]}",
            "2: source.start: a list is not possible: this must be `earliest`, `latest`, a moment or offsets",
        ),
        ("{topic: t, end: earliest}", "2: source: `end: earliest` would read nothing"),
        ("{topic: t, watermark: time}", "2: source.watermark: 'time' is no watermark: write the column and how late"),
        ("{topic: t, watermark: 'time, x'}", "2: source.watermark: 'x' is not a length of time"),
        ("{topic: t, options: {a: {b: c}}}", "2: source.options.a: a mapping is not possible: this must be a text"),
        ("{database: 'mysql://h/d', incrementing: id}", "2: source: give either `table` or `query`"),
        ("{database: 'mysql://h/d', table: t}", "2: source: give `incrementing`, `timestamp` or both"),
        ("{database: 'oracle://u:p@h/d', table: t, timestamp: c}", "2: source.database: 'oracle' is not a database"),
        ("{files: x, max_files: 0}", "2: source.max_files: 0 is too small: it must be above 0"),
        (
            "{generate: {a: id}, rate: fast}",
            "2: source.rate: 'fast' is not possible: this must be a whole number above 0",
        ),
        ("{generate: a}", "2: source.generate: 'a' is not possible: this must be SQL by name"),
        ("{tail: {a: b}}", "2: source.tail: a mapping is not possible: this must be a path or a list of paths"),
    ],
)
def test_in_a_source(tmp_path: Path, source: str, wrong: str) -> None:
    assert one(tmp_path, f"pipeline: p\nsource: {source}\nsinks: [console: true]\n").startswith(wrong)


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        ("lokup: {name: x}", "5: steps[0]: there is no step `lokup`; did you mean `lookup`?"),
        (
            "5",
            "5: steps[0]: a step is a name and its fields, as in `- filter: status >= 400`; the names are sql, parse",
        ),
        ("transmogrify: a", "5: steps[0]: there is no step `transmogrify`; there are sql, parse, cast"),
        (
            "filter: a\n    where: b",
            "5: steps[0]: a step is a name and its fields, as in `- filter: status >= 400`; here are "
            "`filter` and `where` side by side: indent a step's fields under its name",
        ),
        ("{}", "5: steps[0]: a step is a name and its fields"),
        ("filter:", "5: steps[0].filter: its fields must be there: {where: …}"),
        ("watermark", "5: steps[0].watermark: its fields must be there: {column: …, delay: …}"),
        ("aggregate: count(*)", "5: steps[0].aggregate: its fields must be there: {compute: …}"),
        ("watermark: time", "5: steps[0].watermark: 'time' is no watermark"),
        ("watermark: {column: t, delay: long}", "5: steps[0].watermark.delay: 'long' is not a length of time"),
        ("filter: [a]", "5: steps[0].filter: a list is not possible: this must be SQL"),
        ("cast: {a: [int]}", "5: steps[0].cast.a: a list is not possible: this must be a text"),
        ("cast: {}", "5: steps[0].cast: at least one must be there"),
        ("select: []", "5: steps[0].select: at least one must be there"),
        ("select: [a, {b: c}]", "5: steps[0].select[1]: a mapping is not possible: this must be a text"),
        (
            "parse: apache-acces-log",
            "5: steps[0].parse: 'apache-acces-log' is neither a known format (apache-access-log",
        ),
        ("parse: {format: json}", "5: steps[0].parse: json needs `schema`, the columns and their types"),
        (
            "parse: {format: json, shema: a int}",
            "5: steps[0].parse.shema: there is no such field; did you mean `schema`?",
        ),
        (
            "lookup: {name: x, on: y, type: file, pth: z}",
            "5: steps[0].lookup.pth: there is no such field; did you mean `path`?",
        ),
        ("lookup: {name: x, on: y, type: file}", "5: steps[0].lookup: a look-up of type file needs `path`"),
        (
            "lookup: {name: x, on: y, type: sql}",
            "5: steps[0].lookup: a look-up of type sql needs `database` and `table`",
        ),
        (
            "lookup: {name: x, on: y, type: memory, rows: {}, url: 'redis://h'}",
            "5: steps[0].lookup: `url` is for a look-up of type redis; this one is memory",
        ),
        (
            "lookup: {name: x, on: y, type: redis, url: h, columns: a int}",
            "5: steps[0].lookup.url: this is not the URL of a Redis server: write redis://HOST:PORT/DB",
        ),
        ("lookup: {name: x, on: y, type: file, path: no.csv}", "5: steps[0].lookup.path: there is no file "),
        (
            "lookup: {on: y, type: memory, rows: {}}",
            "5: steps[0].lookup.name: this field must be there: Its name in messages",
        ),
        ("lookup: {name: x, on: y, type: memory, rows: {a: 5}}", "5: steps[0].lookup.rows.a: 5 is not possible"),
        (
            "aggregate: {compute: {n: count(*)}, window: {column: t, siez: 5s}}",
            "5: steps[0].aggregate.window.siez: there is no such field; did you mean `size`?",
        ),
        (
            "aggregate: {compute: {n: count(*)}, window: {column: t}}",
            "5: steps[0].aggregate.window: give `size` (tumbling",
        ),
        (
            "aggregate: {compute: {n: count(*)}, window: {column: t, size: 5s, slide: 6s}}",
            "5: steps[0].aggregate.window: `slide` must be longer than nothing and not longer than `size`",
        ),
        (
            "aggregate: {compute: {n: count(*)}, window: {column: t, gap: 5s, slide: 6s}}",
            "5: steps[0].aggregate.window: `slide` is for windows with a `size`",
        ),
        (
            "aggregate: {compute: {n: count(*)}, window: 5s}",
            "5: steps[0].aggregate.window: '5s' is not possible: this must be a mapping of its fields",
        ),
        ("join: {with: custs, on: id}", "5: steps[0].join.with: there is no source or table `custs`; give it under"),
        ("join: {with: stream, on: id}", "5: steps[0].join.with: `stream` is the stream itself"),
        (
            "join: {with: x, on: {a: b}}",
            "5: steps[0].join.on: a mapping is not possible: this must be a list of columns or a SQL",
        ),
        ("join: {on: id}", "5: steps[0].join.with: this field must be there: The name of a source or table"),
        ("deduplicate: {by: id, within: 5m}", "5: steps[0].deduplicate.within: this needs a watermark before it"),
        ("sql: SELECT * FROM streem", "5: steps[0].sql: there is no source or table `streem`; did you mean `stream`?"),
        ("sql: INSERT INTO stream SELECT 1", "5: steps[0].sql: a step is a SELECT; INSERT is not possible here"),
        ("sql: SELECT 1; SELECT 2", "5: steps[0].sql: there are several statements here"),
        ("sql: ''", "5: steps[0].sql: there is no statement here: write a SELECT"),
        ("python: clean", "5: steps[0].python: 'clean' does not name a function: write MODULE:NAME or FILE.py:NAME"),
        ("python: no.py:clean", "5: steps[0].python: there is no file "),
        (
            "python: no_such_module:clean",
            "5: steps[0].python: there is no module no_such_module; a file beside the pipeline is "
            "written no_such_module.py:clean",
        ),
        (
            "map: {function: 'json:lodas', returns: a int}",
            "5: steps[0].map.function: json has no lodas; did you mean `loads`?",
        ),
        ("map: json:loads", "5: steps[0].map.returns: this field must be there: The columns it returns"),
        (
            "state: {processor: json:loads, by: id, returns: a int, tmie: none}",
            "5: steps[0].state.tmie: there is no such field",
        ),
    ],
)
def test_in_a_step(tmp_path: Path, step: str, wrong: str) -> None:
    text = f"pipeline: p\nsource: {{topic: t}}\nsinks: [console: true]\nsteps:\n  - {step}\n"
    assert one(tmp_path, text).startswith(wrong)


@pytest.mark.parametrize(
    ("sink", "wrong"),
    [
        (
            "{tpic: t}",
            "4: sinks[0]: this does not say what it is: one of the fields topic, database, cassandra, table, files, "
            "console must be there; did you mean `topic`?",
        ),
        ("topic", "4: sinks[0]: 'topic' is not possible: give its fields, as {topic: …}"),
        (
            "{topic: t, value: xml}",
            "4: sinks[0].value: 'xml' is not possible: write `json`, `text`, `csv`, `avro` or `raw`",
        ),
        ("{topic: t, partitions: 0}", "4: sinks[0].partitions: 0 is too small: it must be above 0"),
        ("{topic: t, schema: x.avsc}", "4: sinks[0]: `schema` is for `value: avro`; values in json have none"),
        ("{topic: t, value: avro, schema: x.avsc}", "4: sinks[0].schema: there is no file "),
        ("{topic: t, deliver: x}", "4: sinks[0].deliver: there is no such field; did you mean `delivery`?"),
        ("{database: 'mysql://h/d'}", "4: sinks[0].table: this field must be there: The table"),
        ("{cassandra: h, keyspace: k, table: t, key: []}", "4: sinks[0].key: at least one must be there"),
        (
            "{cassandra: h, keyspace: k, table: t, key: a, password: [x]}",
            "4: sinks[0].password: what is given is not possible",
        ),
        ("{table: t, format: parkett}", "4: sinks[0].format: 'parkett' is not possible: write `parquet`"),
        ("{files: [a]}", "4: sinks[0].files: a list is not possible: this must be a path"),
        (
            "{console: lots}",
            "4: sinks[0].console: 'lots' is not possible: this must be `true` or `false` or a whole number",
        ),
    ],
)
def test_in_a_sink(tmp_path: Path, sink: str, wrong: str) -> None:
    assert one(tmp_path, f"pipeline: p\nsource: {{topic: t}}\nsinks:\n  - {sink}\n").startswith(wrong)


def test_all_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path,
        """\
        pipeline: p
        source: {topic: t, vlaue: text}
        tables:
          customers: {topic: customers}
        steps:
          - filter: [a]
          - join: {with: custmers, on: id}
          - sql: |
              SELECT *
              FROM stream
              JOIN one USING (id)
              JOIN two USING (id)
          - lookup: {name: x, on: "${KEY}", type: file, path: nowhere.csv}
        sinks:
          - {topic: out}
          - {topic: out}
        mdoe: once
        ---
        pipeline: q
        source: {topic: t}
        snks: []
        """,
    )
    assert [line.partition(":")[0] for line in found] == ["2", "6", "7", "11", "12", "13", "13", "16", "17", "19", "21"]
    assert found[3].startswith("11: steps[2].sql: there is no source or table `one`")
    assert found[7] == "16: sinks[1]: this is the same as sinks[0]: every row would be written twice"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("pipeline: [a", "1: this is not YAML (column 13): expected ',' or ']'"),
        (
            "pipeline: p\n\tsource: x\n",
            "2: this is not YAML (column 1): found character '\\t' that cannot start any token; "
            "indent with spaces, not with a tab",
        ),
        (
            "pipeline: p\nsql: a: b\n",
            "2: this is not YAML (column 7): mapping values are not allowed here; a text with `: ` in "
            "it must be quoted",
        ),
        (
            "pipeline: @p\n",
            "1: this is not YAML (column 11): found character '@' that cannot start any token; a text that",
        ),
        (
            "a: {b: ${C}}\n",
            "1: this is not YAML (column 9): expected ',' or '}', but got '{'; between braces, `${NAME}`",
        ),
        ("a: *b\n", "1: this is not YAML (column 4): found undefined alias 'b'"),
        ("a: \x07\n", "1: this is not YAML"),
    ],
)
def test_what_is_no_yaml(tmp_path: Path, text: str, wrong: str) -> None:
    assert one(tmp_path, text).startswith(wrong)
