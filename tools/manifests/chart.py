"""Writes the Helm chart to .build/chart, from the manifests of infra/cluster.

    python -m tools.manifests.chart

The chart holds the same YAML. Only two texts differ, the cluster's name and the forwarder's image,
both inside quoted strings: each template is YAML before Helm fills it in and can be compared with
its source without a renderer (docs/decisions/0008-a-chart-that-is-plain-yaml.md).
"""

import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Final

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
  DOVETAIL_CLUSTER: '{CLUSTER_VALUE}'
"""
_VALUES: Final = """\
# Name of the EKS cluster, as its attachment stack has it.
cluster: ""
# The forwarder's image in your registry, with tag or digest.
image: ""
"""
_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "cluster": {"type": "string", "pattern": "^([0-9A-Za-z][A-Za-z0-9_-]{0,99})?$"},
        "global": {"type": "object"},
        "image": {"type": "string", "pattern": "^([a-z0-9][A-Za-z0-9._:/@-]*)?$"},
    },
}


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
    texts = {name: _read(name) for name in (*CRDS, *PLAIN, FORWARDER)}
    image = f"image: {IMAGE}:{release}\n"
    if texts[FORWARDER].count(image) != 1:
        raise ValueError(f"{FORWARDER}: expected exactly one line {image.strip()!r}")
    filled = texts[FORWARDER].replace(image, f"image: '{IMAGE_VALUE}'\n")
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
        "values.yaml": _VALUES,
        "values.schema.json": json.dumps(_SCHEMA, indent=2) + "\n",
        **{f"crds/{name}": texts[name] for name in CRDS},
        **{f"templates/{name}": texts[name] for name in PLAIN},
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
