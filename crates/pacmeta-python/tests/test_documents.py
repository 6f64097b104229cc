"""The Python of the documents runs as it stands there; the stubs are those of the module; the wheel holds what it should."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pacmeta

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["docs/python.md", "crates/pacmeta-python/README.md"])
def test_documents_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)


def examples_of(name: str) -> list[doctest.DocTest]:
    """The examples of a public name and of its methods, in their order."""
    thing = getattr(pacmeta, name)
    methods = [member for key, member in vars(thing).items() if key[0] != "_"] if isinstance(thing, type) else []
    texts = [inspect.getdoc(member) or "" for member in (thing, *methods)]
    parser = doctest.DocTestParser()
    return [parser.get_doctest(text, {}, name, None, None) for text in texts if ">>>" in text]


@pytest.mark.parametrize("name", [name for name in dir(pacmeta) if name != "__version__"])
def test_every_public_name_has_examples_that_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples_of(name)
    assert found and found[0].examples
    names: dict[str, object] = {}
    # The examples of a class are one story: those of its methods use its names.
    for test in found:
        test.globs = names
        printed: list[str] = []
        doctest.DocTestRunner(verbose=False).run(test, out=printed.append, clear_globs=False)
        assert not printed, "".join(printed)


@pytest.mark.parametrize(
    ("name", "methods"), [("Prior", ["adapt", "predict", "evaluate", "bound"]), ("Posterior", ["predict", "interval"])]
)
def test_methods_have_examples(name: str, methods: list[str]) -> None:
    for method in methods:
        assert ">>>" in (getattr(pacmeta, name).__dict__[method].__doc__ or ""), method


def test_the_example_of_the_module_runs() -> None:
    result = doctest.testmod(pacmeta)
    assert result.attempted > 2 and result.failed == 0


def test_a_star_import_needs_numpy_only() -> None:
    code = "import sys; sys.modules |= dict.fromkeys(['sklearn', 'matplotlib', 'pandas']); from pacmeta import *; meta_learn"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"FewShotClassifier", "FewShotRegressor", "meta_learn_head", "plot"} <= set(dir(pacmeta))


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
