"""Builds the wheel: maturin's, with the command `pacmeta` and the licences of all crates added."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401 (the hooks of a build backend)
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "crates/pacmeta-python/pacmeta.data/scripts"
LICENCES = ROOT / "THIRD-PARTY-LICENSES.txt"


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    add_command()
    add_licences()
    return str(maturin.build_wheel(directory, settings, metadata))


def build_editable(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    add_command()
    add_licences()
    return str(maturin.build_editable(directory, settings, metadata))


def prepare_metadata_for_build_wheel(directory: str, settings: Any = None) -> str:
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    add_licences()
    return str(maturin.prepare_metadata_for_build_wheel(directory, settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def cargo(*arguments: str) -> str:
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def add_command() -> None:
    """The binary goes where pip takes scripts from, without the tables for debuggers."""
    # Without a package: the same build as `cargo run`, which is often there already.
    cargo("build", "--release", "--bin", "pacmeta")
    target = Path(json.loads(cargo("metadata", "--no-deps", "--format-version", "1"))["target_directory"])
    name = "pacmeta.exe" if sys.platform == "win32" else "pacmeta"
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(target / "release" / name, SCRIPTS / name)
    strip = shutil.which("strip")
    if strip and sys.platform != "win32":
        subprocess.run([strip, str(SCRIPTS / name)], check=True)


def add_licences() -> None:
    """The licence files of every crate that is linked into the module or the command."""
    metadata = json.loads(cargo("metadata", "--format-version", "1"))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    wanted = [id for id, package in packages.items() if package["name"] in ("pacmeta-cli", "pacmeta-python")]
    linked: set[str] = set()
    while wanted:
        id = wanted.pop()
        if id in linked:
            continue
        linked.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                wanted.append(dependency["pkg"])
    # Many crates carry the same words.
    texts: dict[str, list[str]] = {}
    for id in linked:
        package = packages[id]
        if package["source"] is None:
            continue  # ours
        folder = Path(package["manifest_path"]).parent
        names = ("LICEN", "COPYING", "NOTICE", "UNLICENSE")
        files = sorted(file for file in folder.iterdir() if file.is_file() and file.name.upper().startswith(names))
        label = f"{package['name']} {package['version']} ({package['license']})"
        for file in files:
            texts.setdefault(file.read_text(errors="replace").strip(), []).append(label)
        if not files:
            texts.setdefault("No licence file in the crate; see its licence expression.", []).append(label)
    parts = ["Licences of the crates that are part of pacmeta's wheel.\n"]
    for text, labels in sorted(texts.items(), key=lambda item: sorted(item[1])):
        parts.append("=" * 80 + "\n" + "\n".join(sorted(set(labels))) + "\n\n" + text + "\n")
    LICENCES.write_text("\n".join(parts))
