"""The built wheel installs into an empty environment, serves, and has the examples in it."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest
from confluent_kafka import Producer

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(300)
def test_the_wheel_installs_into_an_empty_environment_and_serves(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("millstream-*.whl")
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", str(wheel)], check=True)
    command = tmp_path / "empty" / "bin" / "millstream"
    listed = subprocess.run([command, "example", "list"], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert "\nclicks " in listed.stdout
    process = subprocess.Popen(
        [command, "serve", "--listen", "127.0.0.1:0", "--ephemeral"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("listening on ").strip()
        producer = Producer({"bootstrap.servers": address})
        producer.produce("from-the-wheel", b"it serves")
        assert producer.flush(20) == 0
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
