"""Articles: each stage's work, what a stage remembers over a restart, and the whole chain with every part killed."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from articles import crawler
from articles.cleaning import BrokenPageError, clean
from articles.example import CORPUS, compared, main, reason
from articles.recommending import recommend, terms
from articles.similarity import Index, jaccard, shingles
from articles.stages import STAGES
from articles.topics import CLEAN, DEAD_LETTERS, DUPLICATES, RAW, RECOMMENDATIONS, TOPICS, UNIQUE
from example_kit import create_topic
from example_kit.background import in_background
from example_kit.exactly_once import ExactlyOnce
from example_kit.reading import read_topic, text
from millstream.testing import TestServer
from support.cluster import eventually

ANSWERS = json.loads((CORPUS / "answers.json").read_text())
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " * 2


def page(title: str, text: str) -> bytes:
    return f"<html><body><article><h1>{title}</h1><p>{text}</p></article></body></html>".encode()


def corpus(url: str) -> dict[str, Any]:
    return clean(url, (CORPUS / url).read_bytes())


# --- cleaning ---


def test_a_page_is_freed_of_all_but_the_article() -> None:
    html = f"""<html><head><title>Site - T</title><script>var x = "code";</script></head><body><nav>menu</nav>
        <article><h1>A &amp; B</h1><p>{LONG}</p><aside>advert</aside><p>the<em> end</em></p></article>
        <footer>foot</footer></body></html>"""
    article = clean("site/a.html", html.encode())
    assert article["title"] == "A & B"
    assert article["text"] == f"{LONG.strip()} the end"
    assert article["site"] == "site"


def test_the_same_words_in_other_markup_have_the_same_fingerprint() -> None:
    text = f"Title: Other\nDate: today\n\n{LONG.upper()}".encode()
    assert clean("a/b.html", page("T", LONG))["fingerprint"] == clean("c/d.txt", text)["fingerprint"]


@pytest.mark.parametrize(("url", "reason"), ANSWERS["broken"].items())
def test_broken_pages_are_told(url: str, reason: str) -> None:
    with pytest.raises(BrokenPageError, match=reason):
        corpus(url)


# --- copies and recommendations ---


def test_copies_are_found_and_others_are_not() -> None:
    index = Index()
    originals = [url for url in ANSWERS["subjects"] if url not in ANSWERS["copies"]]
    for url in originals:
        assert index.most_alike(url, corpus(url)["text"]) is None, url
        index.add(url, corpus(url)["text"])
    for copy, original in ANSWERS["copies"].items():
        found = index.most_alike(copy, corpus(copy)["text"])
        assert found is not None, copy
        assert found.url == original
        assert found.share == jaccard(shingles(corpus(copy)["text"]), shingles(corpus(original)["text"])) >= 0.5


def test_a_page_is_no_copy_of_itself_and_its_new_text_takes_the_old_ones_place() -> None:
    index = Index()
    index.add("a", LONG)
    assert index.most_alike("a", LONG) is None
    index.add("a", "something else entirely " * 10)
    assert index.most_alike("b", LONG) is None


def test_recommendations_are_on_the_subject() -> None:
    originals = {url: corpus(url) for url in ANSWERS["subjects"] if url not in ANSWERS["copies"]}
    found = recommend(originals)
    assert found.keys() == originals.keys()
    firsts = [ANSWERS["subjects"][url] == ANSWERS["subjects"][others[0]["url"]] for url, others in found.items()]
    assert sum(firsts) / len(firsts) > 0.8
    for url, others in found.items():
        assert url not in {other["url"] for other in others}
        assert sorted((other["score"] for other in others), reverse=True) == [other["score"] for other in others]


def test_terms_are_words_that_tell() -> None:
    assert terms("The bakers were baking more of the loaves") == ["bak", "bak", "loav"]


def test_mistakes_are_counted() -> None:
    answers = {"copies": {"b": "a"}, "broken": {"x": "empty"}, "subjects": {"a": "s", "b": "s", "c": "t"}}
    recommended = {"a": [{"url": "c"}], "c": []}
    assert compared(answers, {"b"}, {"x"}, recommended)["mistakes"] == 0
    assert compared(answers, {"a"}, {"x"}, recommended)["mistakes"] == 0
    assert compared(answers, {"a", "b", "c"}, {"y"}, recommended)["mistakes"] == 4
    assert compared(answers, set(), {"x"}, recommended)["mistakes"] == 1


# --- the stages on a server ---


@pytest.fixture
def bootstrap(millstream: TestServer) -> str:
    for name, (partitions, config) in TOPICS.items():
        create_topic(millstream.bootstrap_servers, name, partitions=partitions, config=config)
    return millstream.bootstrap_servers


@contextmanager
def stage(bootstrap: str, name: str) -> Iterator[None]:
    work = STAGES[name](bootstrap)
    worker = ExactlyOnce(bootstrap, name=name, group=name, topics=[work.source], restore=work.restore, batch=3)
    with in_background(lambda stop: worker.run(work.work, stop)):
        yield


def put(bootstrap: str, topic: str, *values: object) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, key="key", value=value if isinstance(value, bytes) else json.dumps(value))
    producer.flush()


def keys(bootstrap: str, topic: str) -> list[str]:
    return [(record.key() or b"").decode() for record in read_topic(bootstrap, topic)]


def test_a_stage_remembers_what_it_knew(bootstrap: str) -> None:
    first, second, other = (clean(url, page(url, LONG)) for url in ("a/1.html", "b/2.html", "c/3.html"))
    with stage(bootstrap, "unique"):
        put(bootstrap, CLEAN, first)
        assert eventually(lambda: keys(bootstrap, UNIQUE) == ["a/1.html"])
    with stage(bootstrap, "unique"):
        put(bootstrap, CLEAN, second, {**other, "text": f"{LONG} and a few words more", "fingerprint": "another"})
        assert eventually(lambda: keys(bootstrap, DUPLICATES) == ["b/2.html", "c/3.html"])
    assert keys(bootstrap, UNIQUE) == ["a/1.html"]
    exact, near = (json.loads(record.value() or b"") for record in read_topic(bootstrap, DUPLICATES))
    assert exact == {"of": "a/1.html", "alike": 1.0, "how": "exact"}
    assert near["how"] == "near"
    assert 0.5 <= near["alike"] < 1


def test_what_is_no_article_goes_aside_and_work_goes_on(bootstrap: str) -> None:
    article = clean("a/1.html", page("T", LONG))
    with stage(bootstrap, "unique"), stage(bootstrap, "recommend"):
        put(bootstrap, CLEAN, b"{", {"url": "b"}, [1], article)
        assert eventually(lambda: keys(bootstrap, RECOMMENDATIONS) == ["a/1.html"])
    letters = [dict(record.headers() or []) for record in read_topic(bootstrap, DEAD_LETTERS)]
    assert [letter["stage"] for letter in letters] == [b"unique"] * 3
    assert [letter["origin"] for letter in letters] == [f"{CLEAN}-0@{offset}".encode() for offset in range(3)]


def test_a_changed_page_is_brought_again(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "tell", lambda **event: None)
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_bytes(page("T", LONG))
    assert crawler.crawl(bootstrap, tmp_path, 1000, threading.Event()) == 1
    assert crawler.crawl(bootstrap, tmp_path, 1000, threading.Event()) == 0
    (site / "a.html").write_bytes(page("U", LONG))
    assert crawler.crawl(bootstrap, tmp_path, 1000, threading.Event()) == 1
    assert keys(bootstrap, RAW) == ["site/a.html", "site/a.html"]
    with stage(bootstrap, "clean"), stage(bootstrap, "unique"):
        assert eventually(lambda: keys(bootstrap, UNIQUE) == ["site/a.html", "site/a.html"])
    assert keys(bootstrap, DUPLICATES) == []


def test_the_chain(millstream: TestServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap = millstream.bootstrap_servers
    assert main([f"--bootstrap={bootstrap}", "--seconds=3", f"--out={tmp_path}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["pages"] == len(ANSWERS["subjects"]) + len(ANSWERS["broken"])
    assert report["broken"] == {"pages": len(ANSWERS["broken"]), **Counter(ANSWERS["broken"].values())}
    assert report["copies"] == {"exact": 4, "near": 6}
    assert report["lost_or_doubled"] == report["mistakes"] == report["brought_by_a_second_crawl"] == 0

    assert Counter(keys(bootstrap, RAW)).keys() == {*ANSWERS["subjects"], *ANSWERS["broken"]}
    for topic in (RAW, CLEAN, UNIQUE, DUPLICATES, DEAD_LETTERS):
        assert max(Counter(keys(bootstrap, topic)).values()) == 1, topic
    assert set(keys(bootstrap, DEAD_LETTERS)) == set(ANSWERS["broken"])
    unique = {
        (record.key() or b"").decode(): json.loads(record.value() or b"") for record in read_topic(bootstrap, UNIQUE)
    }
    assert len(unique) == len(ANSWERS["subjects"]) - len(ANSWERS["copies"])
    recommended = {
        (record.key() or b"").decode(): json.loads(record.value() or b"")
        for record in read_topic(bootstrap, RECOMMENDATIONS)
    }
    assert recommended == recommend(unique)


@pytest.mark.usefixtures("spark_jars")
def test_the_chain_on_spark(example: Any, log: str) -> None:
    report = example("articles", "--bootstrap", log, "--spark", "--seconds", "2")
    assert report["copies"] == {"exact": 4, "near": 6}
    assert report["lost_or_doubled"] == report["mistakes"] == report["brought_by_a_second_crawl"] == 0
    for topic in (RAW, CLEAN, UNIQUE, DUPLICATES, DEAD_LETTERS):
        assert max(Counter(keys(log, topic)).values()) == 1, topic
    reasons = {text(record.key()): reason(record) for record in read_topic(log, DEAD_LETTERS)}
    assert reasons == ANSWERS["broken"]
