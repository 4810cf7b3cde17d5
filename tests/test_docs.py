"""Docs that can fail: generated pages are current, every option is documented, every sample runs."""

import re
import textwrap
from pathlib import Path

import pytest

import generate_docs
from millstream.testing import running_server

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
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
