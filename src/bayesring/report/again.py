"""How to reproduce a result: the code, the command, the versions."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

from bayesring import likelihoods, priors
from bayesring.model import rank
from bayesring.report.fitted import Fitted
from bayesring.report.markup import facts, paragraph, section

NEVER_MATTER = ("progress", "n_jobs")
"""Parameters that do not affect results."""


def again_section(fitted: Fitted) -> str:
    """How to reproduce it."""
    versions = {name: str(each) for name, each in fitted.description["versions"].items()}
    return section(
        "again",
        "How to reproduce it",
        paragraph(
            "One seed gives one result, bit for bit, with the same versions on a similar machine.",
            "lead",
        ),
        *_command_again(fitted),
        paragraph("In Python, with the same observations:", "lead"),
        f"<pre><code>{escape(code_again(fitted.description))}\n{escape(_fit(fitted))}</code></pre>",
        paragraph("This page, from the saved model:", "lead"),
        "<pre><code>bayesring report model.ring -o report.html</code></pre>",
        facts({**_input(fitted), "seed": str(fitted.seed), **versions}),
    )


def _fit(fitted: Fitted) -> str:
    """The call of `fit`, for a table or for coordinates."""
    if fitted.labels.value is None:
        return "ring.fit(X, y)"
    return f"ring.fit(table, modes={list(fitted.labels.names)!r}, value={fitted.labels.value!r})"


def _command_again(fitted: Fitted) -> list[str]:
    """The command that made the model, if it was one."""
    origin = fitted.description.get("origin", {})
    command = origin.get("command")
    if not command:
        return []
    suffix = Path(origin.get("input", "").split(", ")[0]).suffix
    output = "" if command.startswith("bayesring fit ") else f"-o completed{suffix} "
    shown = f"{command} {output}{'--model' if output else '-o'} model.ring"
    return [
        paragraph("From a shell, with the input named below:", "lead"),
        f"<pre><code>{escape(shown)}</code></pre>",
    ]


def _input(fitted: Fitted) -> dict[str, str]:
    """The data: the file that a command read, or what is known of observations in memory."""
    read = fitted.description.get("origin", {}).get("input")
    modes = ", ".join(fitted.labels.names)
    given = f"{fitted.n_observations:,} observations of {fitted.value_name} by {modes}"
    return {"input": read} if read else {"input": f"{given}, given in Python"}


def code_again(description: Mapping[str, Any]) -> str:
    """Python code that fits the same model again."""
    objects = {name: description[name] for name in ("rank", "likelihood", "prior")}
    used = _class_names(list(objects.values()))
    settings = objects | description["parameters"]
    arguments = "".join(
        f"    {name}={_python(value)},\n"
        for name, value in settings.items()
        if name not in NEVER_MATTER
    )
    imports = "".join(
        f"from {home.__name__} import {', '.join(own)}\n"
        for home in (rank, likelihoods, priors)
        if (own := sorted(name for name in used if _is_from(home, name)))
    )
    return f"from bayesring import TensorRing\n{imports}\nring = TensorRing(\n{arguments})"


def _is_from(home: ModuleType, name: str) -> bool:
    """Whether a class is defined in a module or package."""
    return getattr(home, name, object).__module__.startswith(home.__name__)


def _class_names(value: Any) -> set[str]:
    """Classes named anywhere in a description."""
    if isinstance(value, dict):
        return {value["class"]}.union(*map(_class_names, value.values()))
    return set().union(*map(_class_names, value)) if isinstance(value, list) else set()


def _python(value: Any) -> str:
    """Part of a description as Python code: objects as class calls with their fields."""
    if isinstance(value, dict):
        fields = [f"{name}={_python(each)}" for name, each in value.items() if name != "class"]
        return f"{value['class']}({', '.join(fields)})"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_python, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return "float('inf')" if value == inf else repr(value)
