"""The Python of the documents runs as it stands there; the stubs are those of the module; the wheel holds what it should."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["docs/python.md", "crates/pacmeta-python/README.md"])
def test_documents_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)


@pytest.mark.parametrize("name", ["pacmeta", "pacmeta._run", "pacmeta._estimators"])
def test_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 2 and result.failed == 0


def test_types_and_stubs_hold() -> None:
    pytest.importorskip("mypy")
    package = ROOT / "crates/pacmeta-python/python/pacmeta"
    for command in (
        ["mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(package)],
        ["mypy.stubtest", "pacmeta._pacmeta"],
    ):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_brings_its_types_command_and_licences() -> None:
    from importlib.metadata import files

    names = [str(file) for file in files("pacmeta") or []]
    assert any(name.endswith("pacmeta/py.typed") for name in names)
    assert any(name.endswith("_pacmeta.pyi") for name in names)
    assert any(name.endswith("bin/pacmeta") or name.endswith("Scripts/pacmeta.exe") for name in names)
    assert any(name.endswith("THIRD-PARTY-LICENSES.txt") for name in names)
