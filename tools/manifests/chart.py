"""Writes the Helm chart to .build/chart, from the manifests of infra/cluster.

    python -m tools.manifests.chart

The chart holds the same objects. Where a value stands, its default is what the manifest has: with
the defaults, each template is its source (docs/decisions/0008-a-chart-that-is-plain-yaml.md).
"""

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "infra" / "cluster"
CHART: Final = ROOT / ".build" / "chart"
IMAGE: Final = "registry.invalid/dovetail/forwarder"
# The expression for a value in a template; `required` stops an install that lacks it.
CLUSTER_VALUE: Final = (
    '{{ required "give --set-string cluster=<name as attached>" .Values.cluster }}'
)
IMAGE_VALUE: Final = (
    '{{ required "give --set image=<registry>/dovetail/forwarder:<tag>" .Values.image }}'
)
# CRDs have a folder of their own: Helm applies them first, and never removes them.
CRDS: Final = ("node_templates.yaml", "provisioners.yaml")
PLAIN: Final = ("access.yaml", "network_policy.yaml")
FORWARDER: Final = "forwarder.yaml"

# Policies that a value adds.
OPTIONAL: Final = {
    "egressPolicy": "egress/network_policy.yaml",
    "metricsPolicy": "prometheus/network_policy.yaml",
}
_POD: Final = ("spec", "template", "spec")
_CONTAINER: Final = (*_POD, "containers", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of the chart.

    Attributes:
        path: Where it stands in the forwarder's Deployment; empty where it does not.
        default: What it is by default, where the manifest has nothing there.
        about: A line for users.
        kind: Its type in JSON Schema.
    """

    path: tuple[str | int, ...] = ()
    default: Any = None
    about: str
    kind: str


VALUES: Final[Mapping[str, Value]] = {
    "affinity": Value(
        path=(*_POD, "affinity"),
        about="Off the nodes that it reports: on one of them it could be removed with it.",
        kind="object",
    ),
    "apiTimeoutSeconds": Value(
        default=10, about="Time-out of one call to the bus or the API server.", kind="number"
    ),
    "bus": Value(
        path=(*_CONTAINER, "env", 0, "value"), about="Name or ARN of the event bus.", kind="string"
    ),
    "egressPolicy": Value(
        default=False,
        about="Whether a NetworkPolicy bounds what the forwarder connects to.",
        kind="boolean",
    ),
    "imagePullSecrets": Value(
        path=(*_POD, "imagePullSecrets"), default=[], about="Secrets of the registry.", kind="array"
    ),
    "livenessProbe": Value(path=(*_CONTAINER, "livenessProbe"), about="", kind="object"),
    "metricsPolicy": Value(
        default=False,
        about="Whether namespaces with the label dovetail.dev/scrapes=true read its metrics.",
        kind="boolean",
    ),
    "nodeSelector": Value(path=(*_POD, "nodeSelector"), default={}, about="", kind="object"),
    "podAnnotations": Value(
        path=("spec", "template", "metadata", "annotations"), default={}, about="", kind="object"
    ),
    "priorityClassName": Value(path=(*_POD, "priorityClassName"), about="", kind="string"),
    "readinessProbe": Value(path=(*_CONTAINER, "readinessProbe"), about="", kind="object"),
    "replicas": Value(
        path=("spec", "replicas"),
        about="Two say everything twice, and cost so much.",
        kind="integer",
    ),
    "resources": Value(path=(*_CONTAINER, "resources"), about="", kind="object"),
    "startupProbe": Value(path=(*_CONTAINER, "startupProbe"), about="", kind="object"),
    "strategy": Value(path=("spec", "strategy"), about="", kind="object"),
    "terminationGracePeriodSeconds": Value(
        path=(*_POD, "terminationGracePeriodSeconds"), about="", kind="integer"
    ),
    "tolerations": Value(path=(*_POD, "tolerations"), about="", kind="array"),
    "topologySpreadConstraints": Value(
        path=(*_POD, "topologySpreadConstraints"), default=[], about="", kind="array"
    ),
    "tracing": Value(
        default=False, about="Whether each message begins a trace of X-Ray.", kind="boolean"
    ),
}
_CONFIG_MAP: Final = f"""\
# Made by `make chart`.
apiVersion: v1
kind: ConfigMap
metadata:
  name: dovetail-forwarder
  namespace: dovetail
  labels:
    app.kubernetes.io/name: dovetail
data:
  DOVETAIL_API_TIMEOUT_SECONDS: "{{{{ toJson .Values.apiTimeoutSeconds }}}}"
  DOVETAIL_CLUSTER: '{CLUSTER_VALUE}'
  DOVETAIL_TRACING: "{{{{ toJson .Values.tracing }}}}"
"""
_TEXTS: Final = {
    "cluster": (
        "Name of the EKS cluster, as its attachment stack has it.",
        "^([0-9A-Za-z][A-Za-z0-9_-]{0,99})?$",
    ),
    "image": (
        "The forwarder's image in your registry, with tag or digest.",
        "^([a-z0-9][A-Za-z0-9._:/@-]*)?$",
    ),
}


def deployment() -> dict[str, Any]:
    """Return the forwarder's Deployment in infra/cluster."""
    found: dict[str, Any] = yaml.safe_load(_read(FORWARDER))
    return found


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    """Return what stands at a path of a document; None where nothing does."""
    for step in path:
        known = isinstance(document, list) or step in document
        document = document[step] if known else None
    return document


def put(document: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Write a value at a path of a document."""
    for step in path[:-1]:
        document = document.setdefault(step, {}) if isinstance(document, dict) else document[step]
    document[path[-1]] = value


def defaults() -> dict[str, Any]:
    """Return the value of each name that users do not set."""
    source = deployment()
    return {
        name: value.default
        if not value.path or at(source, value.path) is None
        else at(source, value.path)
        for name, value in VALUES.items()
    }


def _values_file() -> str:
    given = defaults()
    parts = [f'# {about}\n{name}: ""\n' for name, (about, _) in _TEXTS.items()]
    for name, value in VALUES.items():
        said = f"# {value.about}\n" if value.about else ""
        parts.append(said + yaml.safe_dump({name: given[name]}, default_flow_style=False))
    return "".join(parts)


def _schema() -> str:
    texts = {name: {"type": "string", "pattern": form} for name, (_, form) in _TEXTS.items()}
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **texts,
            "global": {"type": "object"},
            **{name: {"type": value.kind} for name, value in VALUES.items()},
        },
    }
    return json.dumps(made, indent=2) + "\n"


def _forwarder() -> str:
    """Return the template of the Deployment: an expression where a value stands."""
    document = deployment()
    for name, value in VALUES.items():
        if value.path:
            put(document, value.path, f"VALUE-{name}")
    text = yaml.safe_dump(document, sort_keys=False, width=1000)
    return re.sub(r"VALUE-(\w+)", r"{{ toJson .Values.\1 }}", text)


def version() -> str:
    """Return the version of the project."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(read["project"]["version"])


def chart_files() -> dict[str, str]:
    """Return every file of the chart by its path in it.

    Raises:
        ValueError: If a manifest holds what Helm would take for a template, or no image.
    """
    release = version()
    texts = {name: _read(name) for name in (*CRDS, *PLAIN, *OPTIONAL.values())}
    image = f"image: {IMAGE}:{release}\n"
    template = _forwarder()
    if template.count(image) != 1:
        raise ValueError(f"{FORWARDER}: expected exactly one line {image.strip()!r}")
    filled = template.replace(image, f"image: '{IMAGE_VALUE}'\n")
    chart = (
        "# Made by `make chart` from infra/cluster.\n"
        "apiVersion: v2\n"
        "name: dovetail\n"
        "description: Dovetail's CRD, rights and forwarder for one cluster\n"
        "type: application\n"
        f"version: {release}\n"
        f'appVersion: "{release}"\n'
    )
    return {
        "Chart.yaml": chart,
        "values.yaml": _values_file(),
        "values.schema.json": _schema(),
        **{f"crds/{name}": texts[name] for name in CRDS},
        **{f"templates/{name}": texts[name] for name in PLAIN},
        **{
            f"templates/{name.replace('/', '_')}": (
                f"{{{{- if .Values.{value} }}}}\n{texts[name]}{{{{- end }}}}\n"
            )
            for value, name in OPTIONAL.items()
        },
        f"templates/{FORWARDER}": filled,
        "templates/configmap.yaml": _CONFIG_MAP,
    }


def _read(name: str) -> str:
    text = (SOURCE / name).read_text(encoding="utf-8")
    if "{{" in text:
        raise ValueError(f"{name}: '{{{{' would be a template for Helm")
    return text


def write(folder: Path) -> None:
    """Write the chart to a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in chart_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """Write the chart."""
    write(CHART)
    return 0


if __name__ == "__main__":
    sys.exit(main())
