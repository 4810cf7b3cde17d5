"""Docs that can fail: generated pages are current, every option is documented, every sample runs."""

import re
import textwrap
from pathlib import Path

import pytest

import generate_docs
import pipeline_docs
from millstream import pipelines
from millstream.pipelines.description.sinks import SINKS
from millstream.pipelines.description.sources import SOURCES
from millstream.pipelines.description.steps import STEPS
from millstream.testing import running_server
from support import doc_samples
from support.doc_samples import AnyEnvironment, Sample, files_beside

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SAMPLE = re.compile(r"```python\n(.*?)```", re.S)


@pytest.mark.parametrize("name", sorted(generate_docs.PAGES))
def test_generated_pages_are_current(name: str) -> None:
    written = (ROOT / "docs" / name).read_text()
    assert written == generate_docs.PAGES[name](), "run: python tools/generate_docs.py"


@pytest.mark.parametrize("words", [words for words, _ in generate_docs.commands()], ids=" ".join)
def test_every_command_speaks_json(words: list[str]) -> None:
    """All but `serve`, whose one line on standard output is its contract."""
    (command,) = [command for path, command in generate_docs.commands() if path == words]
    options = {option for parameter in command.params for option in parameter.opts}
    assert ("--json" in options) == (words != ["serve"])


def test_every_metric_is_documented() -> None:
    source = (ROOT / "src/millstream/server/metrics.py").read_text()
    page = (ROOT / "docs" / "metrics.md").read_text()
    names = set(re.findall(r'"((?:millstream|process)_[a-z_]+)"', source))
    assert names
    for name in names:
        assert f"`{name}" in page


@pytest.mark.parametrize("page", pipeline_docs.pages(), ids=lambda page: page.name)
def test_tables_of_options_are_current(page: Path) -> None:
    assert page.read_text() == pipeline_docs.with_tables(page.read_text()), "run: python tools/generate_docs.py"


@pytest.mark.parametrize("name", [model.__name__ for model in (*SOURCES.values(), *STEPS.values(), *SINKS.values())])
def test_every_part_of_a_pipeline_is_documented(name: str) -> None:
    """A section with a table of its options, and a name in `millstream.pipelines`."""
    assert name in pipeline_docs.homes(), f"no page in docs/pipelines has the line <!-- options: {name} -->"
    assert name in pipelines.__all__


def test_a_table_of_options_replaces_the_one_before() -> None:
    page = "# T\n\n<!-- options: FilterStep -->\nold\n\nmore\n<!-- end -->\nafter\n<!-- options: FilterStep -->\n"
    table = "\n".join(pipeline_docs.option_table(pipelines.FilterStep))
    block = f"<!-- options: FilterStep -->\n{table}\n<!-- end -->\n"
    assert pipeline_docs.with_tables(page) == f"# T\n\n{block}after\n{block}"
    assert "| `where` | SQL | must be given | A SQL condition. |" in table


def test_a_table_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="<!-- options: Filter -->: there is no such element; there are TopicSource, "):
        pipeline_docs.with_tables("<!-- options: Filter -->\n")


def test_every_table_is_somewhere() -> None:
    assert set(pipeline_docs.homes()) == set(pipeline_docs.ELEMENTS)


@pytest.mark.parametrize("sample", doc_samples.pipeline_samples(), ids=str)
def test_pipelines_in_the_docs_are_right(sample: Sample, tmp_path: Path) -> None:
    assert pipelines.read(written(sample, tmp_path / "sample.yaml"), AnyEnvironment())


@pytest.mark.parametrize("sample", doc_samples.python_samples(), ids=str)
def test_python_in_the_pages_about_pipelines_is_right(sample: Sample, tmp_path: Path) -> None:
    path = written(sample, tmp_path / "sample.py")
    makes_one = re.search(r"^@pipeline|= Pipeline\(", sample.text, re.M)
    if makes_one:
        assert pipelines.read(path)
    else:
        exec(compile(sample.text, str(path), "exec"), {})


def written(sample: Sample, path: Path) -> Path:
    """The sample as a file, with those that lie beside it."""
    for name, text in files_beside(sample.page).items():
        path.with_name(name).write_text(text)
    path.write_text(sample.text)
    return path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_sample_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (sample, *_) = SAMPLE.findall((ROOT / "README.md").read_text())
    with running_server() as server:
        exec(compile(sample.replace("127.0.0.1:9092", server.bootstrap_servers), "README.md", "exec"), {})
    assert capsys.readouterr().out == "b'hello'\n"


def test_the_testing_samples_run(pytester: pytest.Pytester) -> None:
    fixture_sample, settings_sample, plain_sample = SAMPLE.findall((ROOT / "docs" / "testing.md").read_text())
    pytester.makepyfile(test_sample=fixture_sample)
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)
    uses_settings = """
    def test_settings(millstream, millstream_session):
        for server in (millstream, millstream_session):
            assert server.settings.values["auto.create.topics.enable"] == "false"
        assert millstream.bootstrap_servers != millstream_session.bootstrap_servers
    """
    pytester.makepyfile(test_sample=settings_sample + textwrap.dedent(uses_settings))
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)
    plain = pytester.makepyfile(plain=plain_sample)
    assert pytester.runpython(plain).ret == 0
