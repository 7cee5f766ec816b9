"""What to run: a plan file (TOML) or a built-in, checked whole before anything starts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from data import FOLDER

_KEYS = {"name", "proof_kind", "timeout_s", "settings", "follow", "environment", "needs", "file", "stage"}
_STAGE_KEYS = {"name", "argv", "timeout_s", "no_progress_s", "is_daemon", "ready_tcp"}
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class PlanStage:
    """One process of a plan; limits in seconds, null where there is none."""

    name: str
    argv: tuple[str, ...]
    timeout_s: float | None = None
    no_progress_s: float | None = None
    is_daemon: bool = False
    ready_tcp: str | None = None


@dataclass(frozen=True)
class Plan:
    """A checked plan. Texts may hold placeholders until `resolved` has put the run's folder and settings in."""

    name: str
    stages: tuple[PlanStage, ...]
    proof_kind: str | None = None
    timeout_s: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    follow: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, for `opening.plan`."""
        stages = [{name: getattr(stage, name) for name in sorted(_STAGE_KEYS)} for stage in self.stages]
        return {**{name: getattr(self, name) for name in ("name", "proof_kind", "timeout_s")}, "stages": stages} | {
            name: dict(getattr(self, name)) for name in ("settings", "follow", "environment", "files")
        }


def read_plan(plan: str) -> Plan:
    """Return the plan of a file, or the built-in of that name.

    Raises:
        UsageError: there is none, or something in it is not understood; the text names the key.
    """
    path = Path(plan)
    if "/" not in plan and not plan.endswith(".toml"):
        path = FOLDER / "plans" / f"{plan}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        built_in = ", ".join(sorted(each.stem for each in (FOLDER / "plans").glob("*.toml")))
        raise UsageError(
            f"plan {plan!r}: cannot be read ({error}). Built-in plans: {built_in}. Nothing was started."
        ) from error
    return parse_plan(text, plan)


def parse_plan(text: str, source: str) -> Plan:
    """Return the plan that a TOML text declares. Raises UsageError, naming `source` and the key."""
    try:
        import tomllib  # 3.11; the one-file runner has built-in plans only
    except ImportError as error:
        raise UsageError("plans need Python 3.11 or newer. Nothing was started.") from error
    try:
        declared = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"plan {source!r} is not TOML: {error}. Nothing was started.") from error
    check = _Check(source)
    check.keys(declared, _KEYS, "")
    stages = tuple(check.stage(each) for each in check.tables(declared, "stage"))
    settings = check.settings(declared.get("settings", {}))
    files = {
        check.text(each, "name", "file"): check.text(each, "text", "file") for each in check.tables(declared, "file")
    }
    return Plan(
        name=check.text(declared, "name", "plan"),
        stages=stages,
        proof_kind=check.optional_text(declared, "proof_kind"),
        timeout_s=check.seconds(declared, "timeout_s", "plan"),
        settings=settings,
        follow=check.texts(declared, "follow"),
        environment=check.texts(declared, "environment"),
        files=files,
    )


def with_command(plan: Plan, command: Sequence[str], stage: str) -> Plan:
    """Return the plan with what stands after `--` as its last stage. Raises UsageError where one is missing."""
    if not command and not plan.stages:
        raise UsageError("no command: write it after `--`, or name a plan with --plan. Nothing was started.")
    if not command:
        return plan
    if not _NAME.fullmatch(stage):
        raise UsageError(f"--stage {stage!r}: letters, digits, '.', '_' and '-' only. Nothing was started.")
    # A command is taken as it stands: braces in it are the operator's own.
    argv = tuple(each.replace("{", "{{").replace("}", "}}") for each in command)
    return _replaced(plan, stages=(*plan.stages, PlanStage(stage, argv)))


def with_settings(plan: Plan, given: Mapping[str, str]) -> Plan:
    """Return the plan with some settings' values replaced. Raises UsageError for a name that it does not have."""
    for name in given:
        if name not in plan.settings:
            known = ", ".join(sorted(plan.settings)) or "none"
            raise UsageError(
                f"--set {name}: plan {plan.name!r} has no such setting; it has: {known}. Nothing was started."
            )
    return _replaced(plan, settings={**plan.settings, **given})


def with_follow(plan: Plan, given: Mapping[str, str]) -> Plan:
    """Return the plan that follows these files too."""
    return _replaced(plan, follow={**plan.follow, **given})


def resolved(plan: Plan, run_folder: Path) -> Plan:
    """Return the plan with every placeholder filled in. Raises UsageError for one that nothing fills."""
    values = {**plan.settings, "run_folder": str(run_folder)}
    values |= {f"file.{name}": str(run_folder / name) for name in plan.files}

    def fill(text: str) -> str:
        return _filled(text, values, plan.name)

    stages = tuple(
        PlanStage(
            stage.name,
            tuple(map(fill, stage.argv)),
            stage.timeout_s,
            stage.no_progress_s,
            stage.is_daemon,
            None if stage.ready_tcp is None else _address(fill(stage.ready_tcp), plan.name, stage.name),
        )
        for stage in plan.stages
    )
    return _replaced(
        plan,
        stages=stages,
        follow={name: _absolute(fill(path)) for name, path in plan.follow.items()},
        environment={name: fill(value) for name, value in plan.environment.items()},
        files={name: fill(text) for name, text in plan.files.items()},
    )


def _replaced(plan: Plan, **changes: Any) -> Plan:
    from dataclasses import replace

    return replace(plan, **changes)


def _absolute(path: str) -> str:
    return os.path.abspath(path)


def _address(text: str, plan: str, stage: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"plan {plan!r}, stage {stage!r}: ready_tcp {text!r} is not HOST:PORT. Nothing was started.")
    return text


def _filled(text: str, values: Mapping[str, str], plan: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        if match[1] not in values:
            known = ", ".join(sorted(values))
            raise UsageError(f"plan {plan!r}: nothing fills {match[0]!r}; known: {known}. Nothing was started.")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, text)


class _Check:
    """Reads values out of a parsed plan; every refusal names the file, the place and the key."""

    def __init__(self, source: str) -> None:
        self._source = source

    def refuse(self, text: str) -> UsageError:
        return UsageError(f"plan {self._source!r}: {text}. Nothing was started.")

    def keys(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                raise self.refuse(f"unknown key {key!r}{where}; known: {', '.join(sorted(known))}")

    def tables(self, table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        found = table.get(key, [])
        if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
            raise self.refuse(f"{key!r} is a list of tables: write [[{key}]]")
        return found

    def text(self, table: Mapping[str, Any], key: str, where: str) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            raise self.refuse(f"{where} needs {key!r}, a text")
        return value

    def optional_text(self, table: Mapping[str, Any], key: str) -> str | None:
        return self.text(table, key, "plan") if key in table else None

    def seconds(self, table: Mapping[str, Any], key: str, where: str) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise self.refuse(f"{where}: {key!r} is {value!r}, and must be seconds above 0")
        return float(value)

    def texts(self, table: Mapping[str, Any], key: str) -> dict[str, str]:
        found = table.get(key, {})
        if not isinstance(found, Mapping) or not all(isinstance(each, str) for each in found.values()):
            raise self.refuse(f"[{key}] holds texts only")
        return dict(found)

    def settings(self, table: Any) -> dict[str, str]:
        if not isinstance(table, Mapping):
            raise self.refuse("[settings.NAME] is a table with a 'value'")
        for name, setting in table.items():
            if not isinstance(setting, Mapping) or "value" not in setting:
                raise self.refuse(f"[settings.{name}] needs 'value'")
            self.keys(setting, {"value", "cohort"}, f" in [settings.{name}]")
        return {name: str(setting["value"]) for name, setting in table.items()}

    def stage(self, table: Mapping[str, Any]) -> PlanStage:
        name = self.text(table, "name", "a stage")
        self.keys(table, _STAGE_KEYS, f" in stage {name!r}")
        argv = table.get("argv")
        if not _NAME.fullmatch(name):
            raise self.refuse(f"stage {name!r}: letters, digits, '.', '_' and '-' only")
        if not isinstance(argv, list) or not argv or not all(isinstance(each, str) for each in argv):
            raise self.refuse(f"stage {name!r} needs 'argv', a list of texts")
        return PlanStage(
            name,
            tuple(argv),
            self.seconds(table, "timeout_s", f"stage {name!r}"),
            self.seconds(table, "no_progress_s", f"stage {name!r}"),
            bool(table.get("is_daemon", False)),
            self.text(table, "ready_tcp", f"stage {name!r}") if "ready_tcp" in table else None,
        )
