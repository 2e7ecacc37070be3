"""Decides what attaching or detaching changes in a cluster, before anything is written."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from functions.cli.attach.manifests import (
    CRD_KIND,
    FORWARDER_KEY,
    NAMESPACE,
    differences,
    has_our_label,
    helm_release,
)
from functions.cli.attach.objects import ObjectKey
from shared.manifests.raw_json import Raw, mapping, mappings, text
from shared.model.dollars_and_counts import first_names
from shared.model.errors import AutoscalerError, PermanentError

if TYPE_CHECKING:
    from functions.cli.attach.kube_objects import KubeObjects

# What Kubernetes itself puts into each namespace, by kind.
_OF_KUBERNETES: Final = {"ConfigMap": "kube-root-ca.crt", "ServiceAccount": "default"}


class Action(StrEnum):
    """What is done with an object."""

    CREATE = "create"
    CHANGE = "change"
    UNCHANGED = "unchanged"
    LEAVE = "leave"
    DELETE = "delete"


class InstallationStep(Struct, frozen=True, kw_only=True):
    """One object, and what is done with it.

    Attributes:
        text: Why, or which fields; empty where there is nothing to say.
        document: What is applied.
    """

    action: Action
    key: ObjectKey
    text: str = ""
    document: Raw = field(default_factory=dict)


class HelmOwnedError(PermanentError):
    """The objects belong to a Helm release, which would undo each change."""


class BeingDeletedError(PermanentError):
    """An object is being deleted: what is applied to it would be lost."""


def attach_steps(objects: "KubeObjects", manifests: Sequence[Raw]) -> tuple[InstallationStep, ...]:
    """Return the steps of attaching, in order; nothing is written.

    No custom resource definition is applied while one of them belongs to another release, such as
    Karpenter's own: a second release would overwrite the first.

    Args:
        manifests: From `installation_manifests`.

    Raises:
        HelmOwnedError: Helm has installed the forwarder.
        BeingDeletedError: An earlier detach is not finished.
    """
    found = {ObjectKey.of(document): objects.find(ObjectKey.of(document)) for document in manifests}
    _refuse_helm(found[FORWARDER_KEY])
    for key, there in found.items():
        if there is not None and mapping(there.get("metadata")).get("deletionTimestamp"):
            raise BeingDeletedError(f"{key}: is being deleted: run it again in a minute")
    others = sorted(
        key.name
        for key, there in found.items()
        if key.kind == CRD_KIND and there is not None and not has_our_label(there)
    )
    return tuple(
        InstallationStep(
            action=Action.LEAVE, key=key, text=f"{others[0]} belongs to another release"
        )
        if key.kind == CRD_KIND and others
        else _attach_step(objects, key, document, found[key])
        for key, document in ((ObjectKey.of(document), document) for document in manifests)
    )


def _attach_step(
    objects: "KubeObjects", key: ObjectKey, document: Raw, there: Raw | None
) -> InstallationStep:
    if there is None:
        return InstallationStep(action=Action.CREATE, key=key, document=document)
    changed = differences(there, objects.apply(document, dry_run=True))
    return InstallationStep(
        action=Action.CHANGE if changed else Action.UNCHANGED,
        key=key,
        text=first_names(changed),
        document=document,
    )


def detach_steps(objects: "KubeObjects", manifests: Sequence[Raw]) -> tuple[InstallationStep, ...]:
    """Return the steps of detaching, in the reverse order of attaching; nothing is written.

    Objects of users are kept: a definition while an object of it exists, the namespace while
    anything else is in it, and every object without Dovetail's label.

    Args:
        manifests: From `installation_manifests`.

    Raises:
        HelmOwnedError: Helm has installed the forwarder.
    """
    _refuse_helm(objects.find(FORWARDER_KEY))
    return tuple(_detach_steps(objects, manifests))


def _detach_steps(objects: "KubeObjects", manifests: Sequence[Raw]) -> Iterator[InstallationStep]:
    for key in (ObjectKey.of(document) for document in reversed(manifests)):
        there = objects.find(key)
        if there is None:
            continue
        why = "" if has_our_label(there) else "lacks Dovetail's label app.kubernetes.io/name"
        if not why and key.kind == CRD_KIND:
            why = _why_definition_stays(objects, there)
        if not why and key.kind == "Namespace":
            why = _why_namespace_stays(objects, manifests)
        yield InstallationStep(action=Action.LEAVE if why else Action.DELETE, key=key, text=why)


def _refuse_helm(deployment: Raw | None) -> None:
    release = helm_release(deployment or {})
    if release:
        raise HelmOwnedError(
            f"{FORWARDER_KEY}: belongs to the Helm release {release}: use helm upgrade and helm "
            "uninstall, or uninstall it first"
        )


def _why_definition_stays(objects: "KubeObjects", definition: Raw) -> str:
    """Return why a definition stays, empty when it can be deleted."""
    names = objects.defined_by(definition)
    if not names:
        return ""
    kind = mapping(mapping(definition.get("spec")).get("names"))
    plural, shown = text(kind.get("plural")), first_names(names, 1)
    return (
        f"defines {text(kind.get('kind'))} {shown}, which would be deleted with it: "
        f"kubectl delete {plural} --all"
    )


def _why_namespace_stays(objects: "KubeObjects", manifests: Sequence[Raw]) -> str:
    """Return why the namespace stays, empty when all in it is from Dovetail or Kubernetes."""
    own = {ObjectKey.of(document) for document in manifests}
    try:
        content = objects.content(NAMESPACE)
    except AutoscalerError as error:
        return f"its content cannot be listed: {error}"
    foreign = [
        ObjectKey.of(found)
        for found in content
        if ObjectKey.of(found) not in own and not has_our_label(found) and not _is_generated(found)
    ]
    return f"holds {min(foreign)}, which is not Dovetail's" if foreign else ""


def _is_generated(found: Raw) -> bool:
    """Return whether an object was made by Kubernetes or belongs to another object."""
    key = ObjectKey.of(found)
    owned = mappings(mapping(found.get("metadata")).get("ownerReferences"))
    return key.kind == "Event" or bool(owned) or _OF_KUBERNETES.get(key.kind) == key.name


def apply_steps(
    objects: "KubeObjects",
    steps: Sequence[InstallationStep],
    on_step: Callable[[InstallationStep], None],
) -> None:
    """Carry out the steps in order.

    Args:
        on_step: Called after each step that has changed something.
    """
    for step in steps:
        match step.action:
            case Action.CREATE | Action.CHANGE:
                objects.apply(step.document)
            case Action.DELETE:
                objects.delete(step.key)
            case _:
                continue
        on_step(step)


def remaining(objects: "KubeObjects", steps: Sequence[InstallationStep]) -> tuple[ObjectKey, ...]:
    """Return the objects that the steps deleted but that still exist, in order.

    Namespaces and definitions disappear once a controller has removed their content.
    """
    deleted = (step.key for step in steps if step.action is Action.DELETE)
    return tuple(key for key in deleted if objects.find(key) is not None)
