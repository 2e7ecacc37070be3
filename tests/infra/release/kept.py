"""What an upgrade must find again of a release: stacks, rows, messages, definitions.

    python -m tests.infra.release.kept 0.1.0

writes tests/data/release-0.1.0.json, once, when the release is made.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from infra.aws.app import build_app
from shared.aws.ledger.row_keys import SCHEMA
from shared.model.messages.message import VERSION
from tests.infra.templates import CONTROL_PLANE, Template, cluster_stack

ROOT: Final = Path(__file__).parents[3]
RECORDS: Final = ROOT / "tests" / "data"
CLUSTER: Final = "prod"
# A resource with one of these keeps its name while it exists: a second one cannot be made.
_NAMES: Final = ("FunctionName", "LogGroupName", "RoleName", "StateMachineName")
# A change of these replaces the table: its rows are lost.
_KEYS: Final = ("AttributeDefinitions", "KeySchema")


def kept(control_plane: Template, cluster: Template) -> dict[str, Any]:
    """Return what an upgrade must find again."""
    return {
        "definitions": {
            document["metadata"]["name"]: _versions(document)
            for path in sorted((ROOT / "infra" / "cluster").rglob("*.yaml"))
            for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
            if document and document["kind"] == "CustomResourceDefinition"
        },
        "messages": VERSION,
        "resources": {"control plane": _stack(control_plane), "cluster": _stack(cluster)},
        "rows": SCHEMA,
    }


def _stack(template: Template) -> dict[str, Any]:
    return {
        name: {
            "type": resource["Type"],
            **{
                key: resource["Properties"][key]
                for key in (*_NAMES, *_KEYS)
                if key in resource.get("Properties", {})
            },
        }
        for name, resource in sorted(template.raw["Resources"].items())
    }


def _versions(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {
        version["name"]: dict(_fields(version["schema"]["openAPIV3Schema"]))
        for version in definition["spec"]["versions"]
        if version["served"]
    }


def _fields(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field of a schema and its type, marked where it is required."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        mark = " required" if name in required else ""
        yield f"{path}.{name}", f"{field.get('type', 'any')}{mark}"
        yield from _fields(field, f"{path}.{name}")
    if "items" in schema:
        yield from _fields(schema["items"], f"{path}[]")


def broken(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what an upgrade from `old` to `new` would lose, sorted."""
    found = [
        f"{what}: version {new[what]} is older than {old[what]}"
        for what in ("messages", "rows")
        if new[what] < old[what]
    ]
    for stack, resources in old["resources"].items():
        for name, resource in resources.items():
            now = new["resources"][stack].get(name)
            if now != resource:
                found.append(f"{stack}: {name} was {resource}, is {now}")
    for kind, versions in old["definitions"].items():
        for version, fields in versions.items():
            now = new["definitions"].get(kind, {}).get(version)
            if now is None:
                found.append(f"{kind}: {version} is not served")
                continue
            found += [
                f"{kind} {version}: {name} was {about}, is {now.get(name, 'gone')}"
                for name, about in fields.items()
                if now.get(name) not in {about, about.removesuffix(" required")}
            ]
            found += [
                f"{kind} {version}: {name} is new and required"
                for name, about in now.items()
                if name not in fields and about.endswith(" required") and _parent(name) in fields
            ]
    return sorted(found)


def _parent(field: str) -> str:
    return field.rpartition(".")[0].removesuffix("[]")


def record(version: str) -> Path:
    """Return the file of a release."""
    return RECORDS / f"release-{version}.json"


def main() -> int:
    """Write the record of a release; 1 when it was written already."""
    path = record(sys.argv[1])
    if path.exists():
        sys.stderr.write(f"{path.name}: was recorded when it was released\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        context = {
            "bundle": "code",
            "clusters": CLUSTER,
            "max_price_per_hour": f"{CLUSTER}:none",
            "forwarder_image": "registry.invalid/dovetail/forwarder:kept",
        }
        build_app(context, outdir=folder).synth()
        read = [
            Template(Path(folder) / f"{stack}.template.json")
            for stack in (CONTROL_PLANE, cluster_stack(CLUSTER))
        ]
    path.write_text(json.dumps(kept(*read), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
