"""Three examples beside node groups of Cluster Autoscaler: nodes, dollars an hour, pods left over.

    python -m tests.node_groups [--write]

Both sides have the same pods, catalogue and capacity type; there are no other nodes and no
DaemonSets. A node group is priced at the mean over the zones that offer its type, since its
machines are spread over them.
"""

import argparse
import contextlib
import copy
import io
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from functions.cli.main import main as dovetail
from shared.instance_types.catalog import embedded_catalog
from shared.model.quantity import parse_amount, parse_cpu_millis
from shared.model.resources import CPU, MEMORY, PODS
from tests.node_groups.autoscaler import NodeGroup, PodKind, scale_up
from tools.made_part import replaced, with_result

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "evidence" / "node-groups.md"
MARKS: Final = ("<!-- made by python -m tests.node_groups -->", "<!-- end -->")
TYPES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge")
_TYPE_KEY: Final = "node.kubernetes.io/instance-type"
_CAPACITY_KEY: Final = "karpenter.sh/capacity-type"
_HEAD: Final = "| pods | nodes of | nodes | $/h | never placed |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An example; `replicas` where the example itself scales its Deployment later."""

    name: str
    told: str
    replicas: int | None = None


CASES: Final = (
    Case(name="four-hundred", told="400 × 250m, 256Mi", replicas=400),
    Case(name="spread", told="the same, spread over hosts (maxSkew 30)", replicas=400),
    Case(name="big", told="100 × 1 cpu, 1Gi and 10 × 10 cpu, 10Gi"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One side's answer to one case."""

    pods: str
    side: str
    nodes: int
    dollars_per_hour: float
    never_placed: int

    def __str__(self) -> str:
        left = f"**{self.never_placed}**" if self.never_placed else "–"
        return (
            f"| {self.pods} | {self.side} | {self.nodes} | {self.dollars_per_hour:.2f} | {left} |"
        )


def rows() -> Iterator[Row]:
    """Yield the rows of all cases."""
    for case in CASES:
        documents = documents_of(case)
        kinds = [kind_of(raw) for raw in documents if raw["kind"] == "Deployment"]
        groups = groups_of(_capacity_type(documents))
        for chosen in ([group] for group in groups):
            yield _of_groups(case, kinds, chosen, f"a group of {chosen[0].name}")
        yield _of_groups(case, kinds, groups, "all three groups")
        yield _of_dovetail(case, _restricted(documents), "Dovetail, these three types")
        yield _of_dovetail(case, documents, "Dovetail")


def documents_of(case: Case) -> list[dict[str, Any]]:
    """Return the manifests of an example, its Deployments scaled."""
    folder = ROOT / "examples" / case.name
    found = [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]
    for raw in found:
        if raw["kind"] == "Deployment" and case.replicas is not None:
            raw["spec"]["replicas"] = case.replicas
    return found


def kind_of(deployment: dict[str, Any]) -> PodKind:
    """Return the pods of a Deployment."""
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    requests = container["resources"]["requests"]
    spreads = spec.get("topologySpreadConstraints", [])
    for spread in spreads:
        assert spread["topologyKey"] == "kubernetes.io/hostname", spread
        assert spread["whenUnsatisfiable"] == "DoNotSchedule", spread
    return PodKind(
        name=deployment["metadata"]["name"],
        count=deployment["spec"]["replicas"],
        cpu=parse_cpu_millis(requests["cpu"]),
        memory=parse_amount(requests["memory"]),
        max_skew=spreads[0]["maxSkew"] if spreads else None,
    )


def groups_of(capacity_type: str) -> list[NodeGroup]:
    """Return a node group of each type, as the catalogue has it."""
    catalog = embedded_catalog()
    found = []
    for name in TYPES:
        instance_type = catalog.get(name)
        assert instance_type is not None, name
        prices = [
            offering.price_micros_per_hour
            for offering in instance_type.offerings
            if offering.capacity_type == capacity_type
        ]
        found.append(
            NodeGroup(
                name=name,
                cpu=instance_type.allocatable[CPU],
                memory=instance_type.allocatable[MEMORY],
                pods=instance_type.allocatable[PODS],
                cpu_capacity=instance_type.capacity[CPU],
                memory_capacity=instance_type.capacity[MEMORY],
                price_micros_per_hour=round(sum(prices) / len(prices)),
            )
        )
    return found


def _of_groups(case: Case, kinds: Sequence[PodKind], groups: Sequence[NodeGroup], side: str) -> Row:
    outcome = scale_up(kinds, groups)
    return Row(
        pods=case.told,
        side=side,
        nodes=len(outcome.nodes),
        dollars_per_hour=outcome.price_micros_per_hour / 1e6,
        never_placed=sum(outcome.never_placed.values()),
    )


def _of_dovetail(case: Case, documents: Sequence[dict[str, Any]], side: str) -> Row:
    """Ask `dovetail plan`, as a user does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.yaml"
        file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            dovetail(["plan", "-f", str(file), "--output", "json"])
    plan = json.loads(said.getvalue())
    return Row(
        pods=case.told,
        side=side,
        nodes=len(plan["nodes"]),
        dollars_per_hour=plan["cost_micros_per_hour"] / 1e6,
        never_placed=len(plan["unschedulable"]),
    )


def _requirements(pool: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pool["spec"]["template"]["spec"]["requirements"]
    return found


def _capacity_type(documents: Sequence[dict[str, Any]]) -> str:
    (pool,) = [raw for raw in documents if raw["kind"] == "NodePool"]
    ((value,),) = [
        entry["values"] for entry in _requirements(pool) if entry["key"] == _CAPACITY_KEY
    ]
    return str(value)


def _restricted(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the manifests with a NodePool that may launch the groups' types alone."""
    changed = copy.deepcopy(list(documents))
    for raw in changed:
        if raw["kind"] == "NodePool":
            only = {"key": _TYPE_KEY, "operator": "In", "values": list(TYPES)}
            _requirements(raw).append(only)
    return changed


def result(found: Iterable[Row]) -> str:
    """Return what Dovetail costs beside the cheapest groups, in one line."""
    by_pods: dict[str, list[Row]] = {}
    for row in found:
        by_pods.setdefault(row.pods, []).append(row)
    return "; ".join(_compared(told, case) for told, case in by_pods.items())


def _compared(told: str, case: Sequence[Row]) -> str:
    ours, groups = case[-1], [row for row in case if "Dovetail" not in row.side]
    said = f"{told}: ${ours.dollars_per_hour:.2f}/h"
    least = min(row.never_placed for row in groups)
    if least:
        return f"{said}, where node groups leave {least} pods without a node"
    return f"{said} instead of ${min(row.dollars_per_hour for row in groups):.2f}/h"


def table(found: Iterable[Row]) -> str:
    """Return the rows as Markdown."""
    return "\n".join([_HEAD, *map(str, found)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print result and table, or write them into the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.node_groups", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write them into the page")
    found = list(rows())
    text = table(found)
    if parser.parse_args(arguments).write:
        page = replaced(PAGE.read_text(encoding="utf-8"), text, MARKS)
        PAGE.write_text(with_result(page, result(found)), encoding="utf-8")
    else:
        sys.stdout.write(f"{result(found)}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
