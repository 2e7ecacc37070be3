"""Labels, requirements and taints of a Provisioner.

Source: https://karpenter.sh/v0.31/concepts/provisioners/ (2023-09).
"""

from typing import Final

from shared.manifests.problems import Section, key_fault, value_fault
from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.requirements import Operator, Requirement, Requirements

_KNOWN_VALUES: Final = (
    (keys.CAPACITY_TYPE, ("on-demand", "spot")),
    (keys.ARCH, ("amd64", "arm64")),
    (keys.OS, ("linux",)),
)
_DEFAULTS: Final = (
    Requirement.of(keys.CAPACITY_TYPE, "on-demand"),
    Requirement.of(keys.ARCH, "amd64"),
    Requirement.of(keys.OS, "linux"),
)
_TYPE_KEYS: Final = (
    keys.INSTANCE_TYPE,
    keys.INSTANCE_FAMILY,
    keys.INSTANCE_CATEGORY,
    keys.INSTANCE_GENERATION,
)
_TYPE_DEFAULTS: Final = (
    Requirement.of(keys.INSTANCE_CATEGORY, "c", "m", "r"),
    Requirement.parse(keys.INSTANCE_GENERATION, "Gt", ["2"]),
)


def read_labels(spec: Section) -> dict[str, str]:
    """Return the labels of new nodes; restricted and malformed ones are refused."""
    found = spec.text_map("labels")
    section = Section(found, spec.at("labels"), spec.problems)
    for key, value in found.items():
        fault = _label_key_fault(key) or value_fault(value)
        if fault:
            section.refuse(key, fault)
    return found


def read_annotations(spec: Section) -> dict[str, str]:
    """Return the annotations of new nodes; malformed keys and those that control us are refused."""
    found = spec.text_map("annotations")
    section = Section(found, spec.at("annotations"), spec.problems)
    for key in found:
        fault = key_fault(key)
        if not fault and keys.is_control_annotation(key):
            fault = (
                "this annotation belongs to Dovetail or Karpenter; of their annotations only "
                f"{keys.DO_NOT_CONSOLIDATE} may be set"
            )
        if fault:
            section.refuse(key, fault)
    return found


def read_requirements(spec: Section, labels: dict[str, str]) -> Requirements:
    """Return labels and requirements merged, with defaults for keys that neither mentions."""
    given = [Requirement.of(key, value) for key, value in labels.items()]
    for section in spec.sections("requirements"):
        parsed = _requirement(section)
        if parsed is not None:
            given.append(parsed)
    merged = Requirements.of(given)
    mentioned = {requirement.key for requirement in merged}
    for key in merged.empty_keys():
        parts = " and ".join(
            requirement.describe() for requirement in given if requirement.key == key
        )
        _refuse_all(spec, parts, "no value satisfies all of these; loosen one")
    for key, known in _KNOWN_VALUES:
        wanted = merged.get(key)
        if wanted is None or wanted.is_empty():
            continue
        if not any(wanted.allows(value) for value in known):
            _refuse_all(spec, wanted.describe(), f"allow at least one of {', '.join(known)}")
    defaults = [requirement for requirement in _DEFAULTS if requirement.key not in mentioned]
    if mentioned.isdisjoint(_TYPE_KEYS):
        defaults.extend(_TYPE_DEFAULTS)
    return merged.merge(Requirements.of(defaults))


def read_taints(spec: Section) -> tuple[tuple[Taint, ...], tuple[Taint, ...]]:
    """Return taints and startup taints; no key and effect may appear twice among both."""
    seen: set[tuple[str, str]] = set()
    both = []
    for field in ("taints", "startupTaints"):
        found = []
        for section in spec.sections(field):
            taint = _taint(section)
            if taint is None:
                continue
            if (taint.key, taint.effect) in seen:
                section.refuse("key", f"another taint has this key with effect {taint.effect}")
            seen.add((taint.key, taint.effect))
            found.append(taint)
        both.append(tuple(found))
    return both[0], both[1]


def _taint(other_section: Section) -> Taint | None:
    other_section.refuse_unknown(("effect", "key", "timeAdded", "value"))
    key, value = other_section.text("key"), other_section.text("value")
    effect = other_section.text("effect", choices=tuple(Effect))
    if not other_section.has("effect"):
        other_section.refuse("effect", f"use one of {', '.join(Effect)}")
    if fault := key_fault(key):
        other_section.refuse("key", fault)
    if fault := value_fault(value):
        other_section.refuse("value", fault)
    return Taint(key=key, value=value, effect=Effect(effect)) if effect else None


def _requirement(other_section: Section) -> Requirement | None:
    before = len(other_section.problems)
    other_section.refuse_unknown(("key", "operator", "values"))
    key, operator, values = (
        other_section.text("key"),
        other_section.text("operator"),
        other_section.texts("values"),
    )
    if fault := _label_key_fault(key):
        other_section.refuse("key", fault)
    if operator not in tuple(Operator):
        other_section.refuse("operator", f"use one of {', '.join(Operator)}")
    for value in values:
        if fault := value_fault(value):
            other_section.refuse("values", f"{value!r}: {fault}")
    if len(other_section.problems) > before:
        return None
    try:
        # A negative bound is refused above: no label value begins with a minus.
        return Requirement.parse(key, operator, values)
    except ValueError as error:
        other_section.refuse("values", str(error))
        return None


def _label_key_fault(key: str) -> str | None:
    if fault := key_fault(key):
        return fault
    if keys.is_restricted(key):
        return "this key belongs to Kubernetes, Karpenter or Dovetail; use one of your own domain"
    return None


def _refuse_all(spec: Section, value: str, remedy: str) -> None:
    Section({"requirements": value}, spec.path, spec.problems).refuse("requirements", remedy)
