"""Scenarios: a folder of manifests and a file of steps and expectations."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from infra.local.demo.children import ROOT
from infra.local.demo.cluster_client import Object, read_documents
from infra.local.demo.problem import Problem
from shared.manifests.spans import read_span

# Beside the manifests, in a folder of its own: `kubectl apply -f FOLDER` takes only manifests.
_FILE = Path("expect") / "scenario.yaml"
EXAMPLES = ROOT / "examples"
_POD = ("spec", "template", "metadata", "annotations", "karpenter.sh/do-not-disrupt")
# Where each kind says how long something lasts.
_SPANS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Provisioner": (("spec", "ttlSecondsAfterEmpty"), ("spec", "ttlSecondsUntilExpired")),
    "NodePool": (
        ("spec", "disruption", "consolidateAfter"),
        ("spec", "template", "spec", "expireAfter"),
        ("spec", "template", "spec", "terminationGracePeriod"),
    ),
    "Deployment": (_POD,),
    "StatefulSet": (_POD,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is done, then expectations that must come true within a time.

    Attributes:
        does: Verb to its arguments: apply, apply_within_schedule, scale, delete,
            delete_busiest_node, stand, bound, interrupt_busiest_node,
            terminate_busiest_instance, wait_seconds, disturb,
            stop_busiest_kubelets, kill_at_launch, api_server_away_seconds,
            sweep_after_seconds, launch_as_karpenter, karpenter_leads, brakes or migrate.
        expects: Name of an expectation to its arguments.
        within_seconds: For all expectations, whatever the speed; `Patience` counts them.
    """

    title: str
    does: Mapping[str, Any] = field(hash=False)
    expects: Mapping[str, Any] = field(hash=False)
    within_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is played and what must come of it.

    Attributes:
        settings: Overrides of the functions' settings, by name.
    """

    name: str
    title: str
    folder: Path
    steps: tuple[Step, ...]
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)


def scenario_names(examples: Path = EXAMPLES) -> tuple[str, ...]:
    return tuple(sorted(path.parents[1].name for path in examples.glob(f"*/{_FILE}")))


def load_scenario(name: str, examples: Path = EXAMPLES) -> Scenario:
    folder = examples / name
    if not (folder / _FILE).exists():
        if known := ", ".join(scenario_names(examples)):
            raise Problem(f"scenario {name!r} does not exist: use one of {known}")
        raise Problem(f"{examples}: holds no scenario: name a folder with */{_FILE} in it")
    documents = read_documents([folder / _FILE])
    try:
        (document,) = documents
        steps = tuple(_step(step) for step in document["steps"])
        settings = {str(k): str(v) for k, v in dict(document.get("settings") or {}).items()}
        title = str(document["title"])
        return Scenario(name=name, title=title, folder=folder, steps=steps, settings=settings)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Problem(
            f"{folder / _FILE}: {type(error).__name__} {error}: give a title and steps, "
            "each with title, do, expect and within_seconds"
        ) from error


def _step(document: Mapping[str, Any]) -> Step:
    return Step(
        title=str(document["title"]),
        does=dict(document.get("do") or {}),
        expects=dict(document.get("expect") or {}),
        within_seconds=float(document.get("within_seconds", 60)),
    )


def scaled(document: Object, speed: float) -> Object:
    """Return a manifest with its spans of time divided by the speed, at least a second each.

    These are the ttls of a Provisioner, the spans of a NodePool, and how long pods of a workload
    hold their nodes. The times of disruption budgets stay: their schedules know whole minutes.
    """
    if speed == 1 or not (places := _SPANS.get(document.get("kind", ""))):
        return document
    changed = copy.deepcopy(document)
    for *path, name in places:
        holder: Any = changed
        for step in path:
            holder = (holder or {}).get(step)
        if holder and name in holder:
            holder[name] = _shorter(holder[name], speed)
    return changed


def _shorter(span: int | str, speed: float) -> int | str:
    """Divide seconds, or a span as `1h30m`; a text that is neither (Never, true) stays."""
    if isinstance(span, int):
        return max(1, round(span / speed))
    try:
        length = read_span(span)
    except ValueError:
        return span
    if not length:
        return span
    return f"{max(1, round(length.total_seconds() / speed))}s"


def whole_minute_after(when: datetime) -> datetime:
    """Return the first whole minute that is not before: schedules know no others."""
    floor = when.replace(second=0, microsecond=0)
    return floor if floor == when else floor + timedelta(minutes=1)


def within_schedule(document: Object, now: datetime, ends: datetime) -> Object:
    """Return a NodePool whose budgets with a schedule are active from now until a whole minute.

    A play does not wait for the hours of its file. A schedule is five fields of cron in UTC.
    """
    changed = copy.deepcopy(document)
    begins = now.replace(second=0, microsecond=0)
    minutes = int((ends - begins).total_seconds() // 60)
    for budget in (changed["spec"].get("disruption") or {}).get("budgets") or ():
        if "schedule" in budget:
            budget["schedule"] = f"{begins.minute} {begins.hour} * * *"
            budget["duration"] = f"{minutes}m"
    return changed


def manifests(scenario: Scenario, names: list[str], speed: float) -> list[Object]:
    """Return the documents of some of a scenario's files, ttls scaled."""
    documents = read_documents(scenario.folder / name for name in names)
    return [scaled(document, speed) for document in documents]
