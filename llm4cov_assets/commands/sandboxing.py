"""The option with which a person takes testbenches out of the sandbox."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def _set(unsandboxed: bool) -> bool:
    if unsandboxed:
        os.environ["LLM4COV_SANDBOX"] = "plain"
    return unsandboxed


UnsandboxedOption = Annotated[
    bool,
    typer.Option("--unsandboxed", callback=_set, help="run testbenches with your rights: only those you trust"),
]
"""Takes effect when the command line is read, through LLM4COV_SANDBOX: a command needs no more than to have it."""
