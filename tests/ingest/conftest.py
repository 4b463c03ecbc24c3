"""What the tests of designs share: a simulator, empty homes, and the linter."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sim.design import Design
from sim.simulator import Simulator
from sim.toolchain import find_toolchain


@pytest.fixture(scope="session")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all tests that build: the runtime is compiled once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def simulator(warm_home: Path) -> Iterator[Simulator]:
    with Simulator(warm_home, workers=2) as found:
        yield found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that the command line uses too."""
    monkeypatch.setenv("LLM4COV_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def lint(tmp_path: Path) -> Callable[[Design], str]:
    """What Verilator says about a design with all warnings on; empty when it says nothing."""
    toolchain = find_toolchain(tmp_path)
    environment = {**os.environ, "VERILATOR_ROOT": str(toolchain.verilator_root)}

    def said(design: Design) -> str:
        design.write_to(tmp_path)
        parameters = [f"-G{name}={value}" for name, value in design.parameters]
        command = [str(toolchain.verilator), "--lint-only", "-Wall", "--top-module", design.top, *parameters]
        files = [f.path for f in design.sources]
        run = subprocess.run([*command, *files], cwd=tmp_path, env=environment, capture_output=True, text=True)
        return run.stderr if run.returncode else ""

    return said
