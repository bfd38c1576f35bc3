"""Every parameter of a public function is described, and every option of the command line has help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

import rankdp
from rankdp.cli import cli

NAMESPACES = ("attack", "audit", "learn")


def public() -> Iterator[tuple[str, Any]]:
    """Every public name that can be called."""
    for name in rankdp.__all__:
        yield f"rankdp.{name}", getattr(rankdp, name)
    for space in NAMESPACES:
        for name in getattr(rankdp, space).__all__:
            yield f"rankdp.{space}.{name}", getattr(getattr(rankdp, space), name)


def functions() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Functions, methods and constructors, each with the docstring that must describe its parameters."""
    for name, value in public():
        if inspect.isclass(value):
            if issubclass(value, Exception):
                continue
            own = value.__init__
            if inspect.isfunction(own):
                yield name, own, inspect.getdoc(value) or ""
            ours = [base for base in reversed(value.__mro__) if base.__module__.startswith("rankdp")]
            for method, member in {name: member for base in ours for name, member in vars(base).items()}.items():
                function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                if inspect.isfunction(function) and not method.startswith("_"):
                    yield f"{name}.{method}", function, inspect.getdoc(function) or ""
        elif callable(value):
            yield name, value, inspect.getdoc(value) or ""


def described(documentation: str) -> set[str]:
    """The names before a colon in the section Parameters (or Attributes, for plain data)."""
    names: set[str] = set()
    for section in re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", documentation, re.MULTILINE | re.DOTALL
    ):
        for line in re.findall(r"^(\*{0,2}\w[\w, *]*?)(?: : .*)?$", section, re.MULTILINE):
            names |= {name.strip().lstrip("*") for name in line.split(",")}
    return names


def undescribed(function: Callable[..., Any], documentation: str) -> list[str]:
    """The parameters without a description; those that begin with an underscore are not for users."""
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return [name for name in parameters if not name.startswith("_") and name not in described(documentation)]


@pytest.mark.parametrize(
    ("name", "function", "documentation"),
    list(functions()),
    ids=lambda value: value if isinstance(value, str) and value.startswith("rankdp.") else "",
)
def test_every_parameter_is_described(name, function, documentation):
    assert documentation
    assert not undescribed(function, documentation), name


def test_a_missing_description_is_noticed():
    def function(a: int, b: int) -> None:
        """Do.

        Parameters
        ----------
        a : int
            Something: b is not here.
        """

    assert undescribed(function, inspect.getdoc(function) or "") == ["b"]


def commands(group: click.Group, name: str = "rankdp") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {word}")


@pytest.mark.parametrize(
    ("name", "command"), list(commands(cli)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_has_help(name, command):
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]}"
