"""What the nodes of a scenario cost, and what its pods must cost at least."""

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from infra.local.demo.cluster_client import Object
from infra.local.demo.problem import Problem, last_words
from infra.local.ec2.allocation import DEPTHS, pool_depth
from infra.local.ec2.pools import SPOT
from shared.instance_types.catalog import embedded_catalog, embedded_text

_TYPE = "node.kubernetes.io/instance-type"
_ZONE = "topology.kubernetes.io/zone"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"


@functools.cache
def prices() -> Mapping[tuple[str, str, str], int]:
    """Return micro-dollars per hour by instance type, zone and capacity type."""
    return {
        (
            instance_type.name,
            offering.zone,
            offering.capacity_type.value,
        ): offering.price_micros_per_hour
        for instance_type in embedded_catalog().instance_types
        for offering in instance_type.offerings
    }


def price_of(labels: Mapping[str, str]) -> int:
    """Return what a node with these labels costs, in micro-dollars per hour; 0 if not known."""
    place = (labels.get(_TYPE, ""), labels.get(_ZONE, ""), labels.get(_CAPACITY_TYPE, ""))
    return prices().get(place, 0)


def bound_of(
    documents: Iterable[Object], replicas: Mapping[str, int], *, deep_pools: bool = False
) -> int:
    """Return the proven bound of what pods cost at least, in micro-dollars per hour.

    Computed by `dovetail plan` in another process, for an empty cluster.

    Args:
        replicas: Of Deployments, by name, in place of the replicas in their manifests.
        deep_pools: Whether only the deeper half of the spot pools counts: EC2 takes no instance
            from another while one of these is among the options.
    """
    changed = []
    for document in documents:
        count = (
            replicas.get(document["metadata"]["name"]) if document["kind"] == "Deployment" else None
        )
        changed.append(
            document
            if count is None
            else {**document, "spec": {**document["spec"], "replicas": count}}
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.yaml"
        path.write_text(yaml.safe_dump_all(changed), encoding="utf-8")
        catalog = Path(folder) / "catalog.json"
        if deep_pools:
            catalog.write_text(json.dumps(_with_deep_pools()), encoding="utf-8")
        log = Path(folder) / "log"
        with log.open("w", encoding="utf-8") as errors:
            ended = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "functions.cli",
                    "plan",
                    "-f",
                    str(path),
                    "--output",
                    "json",
                    *(["--catalog", str(catalog)] if deep_pools else []),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                check=False,
            )
        if ended.returncode != 0:
            raise Problem(f"no bound: {last_words(log)}")
    plan = json.loads(ended.stdout)
    return int(plan["lower_bound_micros_per_hour"])


def _with_deep_pools() -> Object:
    """Return the embedded catalogue without the spot pools that EC2 passes over."""
    document: Object = json.loads(embedded_text())
    for type_ in document["types"]:
        type_["offerings"] = [
            offering
            for offering in type_["offerings"]
            if offering["capacity_type"] != SPOT
            or 2 * pool_depth(type_["name"], offering["zone"]) >= DEPTHS
        ]
    return document
