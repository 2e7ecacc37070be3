"""What attaching a cluster changes in it, and detaching it: decided before anything is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from shared.installation.manifests import (
    DEFINITION,
    FORWARDER_KEY,
    NAMESPACE,
    differences,
    helm_release,
    is_labelled,
)
from shared.manifests.fields import Raw, mapping, mappings, text
from shared.model.errors import AutoscalerError, PermanentError
from shared.ports.objects import ObjectKey, Objects

_SHOWN: Final = 3
# What Kubernetes itself puts into each namespace, by kind.
_OF_KUBERNETES: Final = {"ConfigMap": "kube-root-ca.crt", "ServiceAccount": "default"}


class Action(StrEnum):
    """What is done with an object."""

    CREATE = "create"
    CHANGE = "change"
    UNCHANGED = "unchanged"
    LEAVE = "leave"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One object, and what is done with it.

    Attributes:
        text: Why, or which fields; empty where there is nothing to say.
        document: What is applied.
    """

    action: Action
    key: ObjectKey
    text: str = ""
    document: Raw = field(default_factory=dict, hash=False)


class HelmOwnedError(PermanentError):
    """The objects belong to a Helm release, which would undo each change."""


class BeingDeletedError(PermanentError):
    """An object is on its way out: what is applied to it goes with it."""


def attach_steps(objects: Objects, wanted: Sequence[Raw]) -> tuple[Step, ...]:
    """Return what attaching does, in its order; nothing is written.

    No definition is applied while one of them belongs to another release, as Karpenter's own: a
    second release would overwrite the first.

    Args:
        wanted: From `wanted_objects`.

    Raises:
        HelmOwnedError: Helm has installed the forwarder.
        BeingDeletedError: An earlier detaching is not finished.
    """
    found = {ObjectKey.of(document): objects.find(ObjectKey.of(document)) for document in wanted}
    _refuse_helm(found[FORWARDER_KEY])
    for key, there in found.items():
        if there is not None and mapping(there.get("metadata")).get("deletionTimestamp"):
            raise BeingDeletedError(f"{key}: is being deleted: run it again in a minute")
    others = sorted(
        key.name
        for key, there in found.items()
        if key.kind == DEFINITION and there is not None and not is_labelled(there)
    )
    return tuple(
        Step(action=Action.LEAVE, key=key, text=f"{others[0]} belongs to another release")
        if key.kind == DEFINITION and others
        else _attach_step(objects, key, document, found[key])
        for key, document in ((ObjectKey.of(document), document) for document in wanted)
    )


def _attach_step(objects: Objects, key: ObjectKey, document: Raw, there: Raw | None) -> Step:
    if there is None:
        return Step(action=Action.CREATE, key=key, document=document)
    changed = differences(there, objects.apply(document, dry_run=True))
    shown = ", ".join(changed[:_SHOWN])
    more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    return Step(
        action=Action.CHANGE if changed else Action.UNCHANGED,
        key=key,
        text=f"{shown}{more}",
        document=document,
    )


def detach_steps(objects: Objects, wanted: Sequence[Raw]) -> tuple[Step, ...]:
    """Return what detaching does: the order of attaching, backwards; nothing is written.

    What a user wrote is kept: a definition while an object of it exists, the namespace while
    anything else is in it, and every object without Dovetail's label.

    Args:
        wanted: From `wanted_objects`.

    Raises:
        HelmOwnedError: Helm has installed the forwarder.
    """
    _refuse_helm(objects.find(FORWARDER_KEY))
    return tuple(_detach_steps(objects, wanted))


def _detach_steps(objects: Objects, wanted: Sequence[Raw]) -> Iterator[Step]:
    for key in (ObjectKey.of(document) for document in reversed(wanted)):
        there = objects.find(key)
        if there is None:
            continue
        why = "" if is_labelled(there) else "lacks Dovetail's label app.kubernetes.io/name"
        if not why and key.kind == DEFINITION:
            why = _defines(objects, there)
        if not why and key.kind == "Namespace":
            why = _holds(objects, wanted)
        yield Step(action=Action.LEAVE if why else Action.DELETE, key=key, text=why)


def _refuse_helm(deployment: Raw | None) -> None:
    release = helm_release(deployment or {})
    if release:
        raise HelmOwnedError(
            f"{FORWARDER_KEY}: belongs to the Helm release {release}: use helm upgrade and helm "
            "uninstall, or uninstall it first"
        )


def _defines(objects: Objects, definition: Raw) -> str:
    """Return why a definition stays, empty when it need not."""
    names = objects.defined_by(definition)
    if not names:
        return ""
    kind = mapping(mapping(definition.get("spec")).get("names"))
    plural = text(kind.get("plural"))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"defines {text(kind.get('kind'))} {names[0]}{more}, which would be deleted with it: "
        f"kubectl delete {plural} --all"
    )


def _holds(objects: Objects, wanted: Sequence[Raw]) -> str:
    """Return why the namespace stays, empty when all in it is Dovetail's or Kubernetes' own."""
    own = {ObjectKey.of(document) for document in wanted}
    try:
        content = objects.content(NAMESPACE)
    except AutoscalerError as error:
        return f"its content cannot be listed: {error}"
    foreign = [
        ObjectKey.of(found)
        for found in content
        if ObjectKey.of(found) not in own and not is_labelled(found) and not _is_made(found)
    ]
    return f"holds {min(foreign)}, which is not Dovetail's" if foreign else ""


def _is_made(found: Raw) -> bool:
    """Return whether an object was made by Kubernetes or belongs to another object."""
    key = ObjectKey.of(found)
    owned = mappings(mapping(found.get("metadata")).get("ownerReferences"))
    return key.kind == "Event" or bool(owned) or _OF_KUBERNETES.get(key.kind) == key.name


def carry_out(objects: Objects, steps: Sequence[Step], tell: Callable[[Step], None]) -> None:
    """Do what was decided, step by step.

    Args:
        tell: Called after each step that has changed something.
    """
    for step in steps:
        match step.action:
            case Action.CREATE | Action.CHANGE:
                objects.apply(step.document)
            case Action.DELETE:
                objects.delete(step.key)
            case _:
                continue
        tell(step)


def remaining(objects: Objects, steps: Sequence[Step]) -> tuple[ObjectKey, ...]:
    """Return what the steps deleted and is there still, in their order.

    Namespaces and definitions go once a controller has removed what is in them.
    """
    deleted = (step.key for step in steps if step.action is Action.DELETE)
    return tuple(key for key in deleted if objects.find(key) is not None)
