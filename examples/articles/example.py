"""Pages crawled, cleaned, freed of copies and recommended: a chain of topics, restarted in the middle

    crawler -> articles-raw -> clean -> articles-clean -> unique -> articles-unique -> recommend -> recommendations

Every stage is a process with a consumer group of its own, and each is killed with -9 while the pages come. The corpus
in this folder has articles on six subjects, copies of some (exact ones and rewritten ones) and broken pages;
`corpus/answers.json` says which, and the result is compared with that. With --spark the stages clean and unique are
Spark pipelines (`pipelines/*.yaml`).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from articles.stages import STAGES
from articles.topics import CLEAN, DEAD_LETTERS, DUPLICATES, RAW, RECOMMENDATIONS, TOPICS, UNIQUE
from example_kit import Child, ExampleError, Run, create_topic, options_parser, running
from example_kit.pipelines import running_pipelines
from example_kit.reading import header, read_topic, text

CORPUS = Path(__file__).parent / "corpus"
DONE_SECONDS = 60.0
SHOWN = 3
PIPELINES = [CORPUS.parent / "pipelines" / name for name in ("clean.yaml", "unique.yaml")]
ON_SPARK = ("clean", "unique")


def main(argv: list[str]) -> int:
    parser = options_parser("articles", __doc__, seconds=6)
    parser.add_argument(
        "--folder", type=Path, default=CORPUS, help="pages, in a folder for each site (default: corpus)"
    )
    parser.add_argument("--spark", action="store_true", help="clean and unique as Spark pipelines")
    options = parser.parse_args(argv)
    with running(options) as run, ExitStack() as stack:
        for name, (partitions, config) in TOPICS.items():
            create_topic(run.bootstrap, name, partitions=partitions, config=config)
        if options.spark:
            run.say("Spark starts; that takes a while")
            stack.enter_context(running_pipelines(run, PIPELINES, {"PYTHONPATH": str(CORPUS.parent.parent)}))
        plain = [name for name in STAGES if name not in ON_SPARK or not options.spark]
        stages = {name: stack.enter_context(process(run, name)) for name in plain}
        return Story(run, stages, options.folder).tell()


class Supervised:
    """A stage that can be killed and started again."""

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._name = name
        self.child = self._start()

    def _start(self) -> Child:
        arguments = ["--bootstrap", self._run.bootstrap, "--stage", self._name]
        log = self._run.out / f"{self._name}.log"
        return Child("articles.stages", arguments, hear=lambda event: None, log=log)

    def kill(self) -> None:
        self.child.kill()
        self._run.say(f"{self._name}: killed with -9, and started again", "yellow")
        self.child = self._start()


@contextmanager
def process(run: Run, name: str) -> Iterator[Supervised]:
    supervised = Supervised(run, name)
    try:
        yield supervised
    finally:
        supervised.child.stop()


class Story:
    """What happens, in order."""

    def __init__(self, run: Run, stages: dict[str, Supervised], folder: Path) -> None:
        self._run = run
        self._stages = stages
        self._folder = folder
        self._pages = sum(1 for _ in folder.glob("*/*"))
        self._brought = 0

    def tell(self) -> int:
        seconds = self._run.options.seconds
        crawler = self._crawl(self._pages / seconds)
        for stage in self._stages.values():
            time.sleep(seconds / 6)
            stage.kill()
        crawler.kill()
        self._run.say("the crawler was killed with -9 too, and a new one goes on", "yellow")
        self._crawl(1000).wait()
        self._run.say("all pages are there")
        self._wait_for_the_chain()
        self._crawl(1000).wait()
        return self._report()

    def _crawl(self, rate: float) -> Child:
        def hear(event: dict[str, Any]) -> None:
            if "new" in event:
                self._run.say(f"the crawler finds {event['new']} pages that are not in {RAW} yet")
                self._brought = event["new"]

        arguments = ["--bootstrap", self._run.bootstrap, "--folder", str(self._folder), "--rate", str(rate)]
        return Child("articles.crawler", arguments, hear=hear, log=self._run.out / "crawler.log")

    def _wait_for_the_chain(self) -> None:
        """Until what went into each stage has come out of it."""
        deadline = time.monotonic() + DONE_SECONDS
        while time.monotonic() < deadline:
            clean, unique = self._count(CLEAN), self._keys(UNIQUE)
            cleaned = self._count(RAW) == clean + self._count(DEAD_LETTERS)
            if cleaned and clean == len(unique) + self._count(DUPLICATES) and self._keys(RECOMMENDATIONS) == unique:
                return
            time.sleep(0.2)
        raise ExampleError(f"the chain was not done within {DONE_SECONDS:.0f} s; see {self._run.out}/*.log")

    def _count(self, topic: str) -> int:
        return sum(1 for _ in read_topic(self._run.bootstrap, topic))

    def _keys(self, topic: str) -> set[str]:
        return {text(record.key()) for record in read_topic(self._run.bootstrap, topic)}

    def _report(self) -> int:
        read = {topic: list(read_topic(self._run.bootstrap, topic)) for topic in TOPICS}
        reasons = Counter(reason(record) for record in read[DEAD_LETTERS])
        copies = {text(record.key()): json.loads(record.value() or b"") for record in read[DUPLICATES]}
        found = {text(record.key()): json.loads(record.value() or b"") for record in read[RECOMMENDATIONS]}
        self._show(found)
        values = {
            "pages": len(read[RAW]),
            "broken": {"pages": len(read[DEAD_LETTERS]), **reasons},
            "articles": len(read[CLEAN]),
            "copies": Counter(copy["how"] for copy in copies.values()),
            "unique": len(read[UNIQUE]),
            "recommended": sum(len(others) for others in found.values()),
            "brought_by_a_second_crawl": self._brought,
            "lost_or_doubled": self._lost_or_doubled([text(record.key()) for record in read[RAW]]),
        }
        right = not values["lost_or_doubled"] and not self._brought
        if self._folder == CORPUS:
            answers = json.loads((CORPUS / "answers.json").read_text())
            values |= compared(answers, set(copies), {text(record.key()) for record in read[DEAD_LETTERS]}, found)
            right = right and not values["mistakes"]
        self._run.report(values, "Articles")
        return 0 if right else 1

    def _lost_or_doubled(self, urls: list[str]) -> int:
        there = Counter(file.relative_to(self._folder).as_posix() for file in self._folder.glob("*/*"))
        return (there - Counter(urls)).total() + (Counter(urls) - there).total()

    def _show(self, found: dict[str, list[dict[str, Any]]]) -> None:
        for url in sorted(found)[:SHOWN]:
            self._run.say(f"readers of {url} may like:")
            for other in found[url]:
                self._run.say(f"    {other['score']:.2f}  {other['title']}")


def reason(letter: Message) -> str:
    """Why a page is no article, in short. A pipeline says it in a header of its own, with the line of the code."""
    said = header(letter, "error") or header(letter, "millstream.message")
    return said.partition(":")[0].partition(" (")[0]


def compared(
    answers: dict[str, Any], copies: set[str], broken: set[str], found: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """What was found, and what is known: of an article and its copy either may have come first."""
    pairs = [{copy, original} for copy, original in answers["copies"].items()]
    mistakes = sum(len(pair & copies) != 1 for pair in pairs) + len(copies - set().union(*pairs))
    mistakes += len(broken ^ set(answers["broken"]))
    subjects = answers["subjects"]
    fitting = [subjects[url] == subjects[others[0]["url"]] for url, others in found.items() if others]
    return {
        "mistakes": mistakes,
        "first_recommendation_on_the_same_subject": f"{100 * sum(fitting) / len(found):.0f} %",
    }
