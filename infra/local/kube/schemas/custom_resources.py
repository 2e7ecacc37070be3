"""Custom resources: registration, and the rules of their schemas."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from infra.local.kube.errors import Cause, JsonObject
from infra.local.kube.kinds import Kinds, Resource, custom_resources
from infra.local.kube.schemas import cel
from infra.local.kube.schemas.checks import IMPLICIT, check, default, inner_schema, prune
from infra.local.kube.store import Entry, Store


def _schema(resource: Resource) -> JsonObject:
    assert resource.custom is not None
    schema: JsonObject = (resource.custom.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


class Schemas:
    """The schemas of the custom resources of one cluster, with their compiled rules."""

    def __init__(self) -> None:
        self.defined_at: dict[tuple[str, str], datetime] = {}
        self._rules: dict[str, Callable[[Any], bool]] = {}

    def register(
        self, store: Store, kinds: Kinds, resource: Resource, entry: Entry, now: datetime
    ) -> None:
        """Serve the resources of a definition that was just written, and report it established."""
        crd = entry.load()
        spec = crd["spec"]
        self.defined_at[spec["group"], spec["names"]["plural"]] = now
        kinds.drop(spec["group"], spec["names"]["plural"])
        kinds.add(custom_resources(crd))
        moment = crd["metadata"]["creationTimestamp"]
        status = {
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": moment,
                 "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": moment,
                 "reason": "InitialNamesAccepted",
                 "message": "the initial names have been accepted"},
            ],
            "acceptedNames": spec["names"],
            "storedVersions": [v["name"] for v in spec["versions"] if v.get("storage")],
        }  # fmt: skip
        if crd.get("status") != status:
            store.write(resource, crd | {"status": status}, entry)

    def definition_complaints(self, crd: JsonObject) -> Iterable[Cause]:
        spec = crd.get("spec") or {}
        names = spec.get("names") or {}
        for field, value in (
            ("spec.group", spec.get("group")),
            ("spec.scope", spec.get("scope")),
            ("spec.names.plural", names.get("plural")),
            ("spec.names.kind", names.get("kind")),
            ("spec.versions", spec.get("versions")),
        ):
            if not value:
                yield "FieldValueRequired", "Required value", field
        expected = f"{names.get('plural')}.{spec.get('group')}"
        if crd["metadata"].get("name") != expected:
            yield "FieldValueInvalid", f'Invalid value: must be "{expected}"', "metadata.name"
        versions = spec.get("versions") or ()
        if versions and sum(bool(entry.get("storage")) for entry in versions) != 1:
            why = "Invalid value: must have exactly one version marked as storage version"
            yield "FieldValueInvalid", why, "spec.versions"
        for index, version in enumerate(versions):
            field = f"spec.versions[{index}].schema.openAPIV3Schema"
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if not schema:
                yield "FieldValueRequired", "Required value: schemas are required", field
            else:
                yield from self._rule_complaints(schema, field)

    def _rule_complaints(self, schema: JsonObject, field: str) -> Iterable[Cause]:
        for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
            try:
                self._program(rule["rule"])
            except cel.CelError as error:
                place = f"{field}.x-kubernetes-validations[{index}].rule"
                yield "FieldValueInvalid", f"Invalid value: {error}", place
        for key, inner in (schema.get("properties") or {}).items():
            yield from self._rule_complaints(inner, f"{field}.properties[{key}]")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from self._rule_complaints(schema[key], f"{field}.{key}")

    def _program(self, rule: str) -> Callable[[Any], bool]:
        found = self._rules.get(rule)
        if found is None:
            found = self._rules[rule] = cel.compile_rule(rule)
        return found

    def prune_and_default(self, resource: Resource, obj: JsonObject) -> list[str]:
        """Drop unknown fields and fill in defaults, in place; return the unknown paths."""
        unknown: list[str] = []
        kept = {key: obj.pop(key) for key in IMPLICIT if key in obj}
        prune(obj, _schema(resource), "", unknown)
        default(obj, _schema(resource))
        obj.update(kept)
        return unknown

    def complaints(self, resource: Resource, obj: JsonObject) -> list[Cause]:
        schema = _schema(resource)
        found = list(check(obj, schema, ""))
        return found or list(self._broken_rules(obj, schema, ""))

    def _broken_rules(self, value: Any, schema: JsonObject, path: str) -> Iterable[Cause]:
        for rule in schema.get("x-kubernetes-validations") or ():
            try:
                holds = self._program(rule["rule"])(value)
                why = rule.get("message") or f"failed rule: {rule['rule']}"
            except cel.CelError as error:
                holds, why = False, f"rule {rule['rule']!r}: {error}"
            if not holds:
                shown = "object" if isinstance(value, dict) else value
                why = f"Invalid value: {json.dumps(shown)}: {why}"
                yield "FieldValueInvalid", why, path.lstrip(".")
        if isinstance(value, dict):
            for key, inner in value.items():
                if sub := inner_schema(schema, key):
                    yield from self._broken_rules(inner, sub, f"{path}.{key}")
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for index, item in enumerate(value):
                yield from self._broken_rules(item, schema["items"], f"{path}[{index}]")
