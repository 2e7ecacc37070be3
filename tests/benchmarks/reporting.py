"""CPU time and memory of `dovetail report` on a dump of 200 nodes and 5,000 pods.

Run as `python -m tests.benchmarks.reporting`; `--dump` prints the dump instead.
"""

import argparse
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.benchmarks.timing import kept_byte_code, reference_milliseconds
from tests.unit.cli import dumps

ROOT: Final = Path(__file__).parents[2]
_PODS: Final = 5_000
_HOSTS: Final = "kubernetes.io/hostname"
_HOW: Final = "karpenter.sh/capacity-type"
_POOLS: Final = {
    "general": (("m5.2xlarge", "m6i.2xlarge", "c6i.4xlarge", "r5.2xlarge", "m5.4xlarge"), 100),
    "batch": (("c5.4xlarge", "c6a.4xlarge", "m5.4xlarge"), 40),
    "memory": (("r5.4xlarge", "r6i.4xlarge"), 20),
    "system": (("m5.2xlarge",), 40),
}
_SHARES: Final = (55, 20, 10, 15)
_COUNTS: Final = (3, 5, 8, 12, 20, 40, 60, 100)
_CPUS: Final = ("50m", "100m", "100m", "200m", "250m", "500m")
_MEMORIES: Final = ("128Mi", "256Mi", "256Mi", "512Mi", "768Mi", "1Gi")


def dump(seed: int = 1) -> list[dumps.Object]:
    """Return a cluster of three NodePools and a node group, half of its workloads with rules."""
    draw = random.Random(seed)
    pools = {
        name: [
            dumps.node(f"{name}-{n}", draw.choice(types), "abc"[n % 3], _labels(name))
            for n in range(count)
        ]
        for name, (types, count) in _POOLS.items()
    }
    nodes = [node for found in pools.values() for node in found]
    left = _PODS - len(dumps.DAEMONS) * len(nodes)
    pods: list[dumps.Object] = []
    while left > 0:
        count = min(left, draw.choice(_COUNTS))
        left -= count
        app = f"app-{left}"
        found = pools[draw.choices(list(pools), weights=_SHARES)[0]]
        start = draw.randrange(len(found))
        pods += dumps.workload(
            draw.choice(("shop", "search", "payments", "reports", "tools")), app, count,
            found[start:] + found[:start], draw.choice(_CPUS), draw.choice(_MEMORIES),
            **_rule(draw.random(), app, count),
        )  # fmt: skip
    return [*_declared(), *dumps.daemon_sets(), *dumps.with_daemons(nodes), *pods]


def _labels(pool: str) -> dict[str, str]:
    if pool == "system":
        return {"eks.amazonaws.com/nodegroup": pool, "eks.amazonaws.com/capacityType": "ON_DEMAND"}
    how = "spot" if pool == "batch" else "on-demand"
    return {"karpenter.sh/nodepool": pool, _HOW: how}


def _declared() -> Iterator[dumps.Object]:
    category, family = (f"karpenter.k8s.aws/instance-{key}" for key in ("category", "family"))
    on_demand = dumps.needs(_HOW, "on-demand")
    yield dumps.node_pool("general", dumps.needs(category, "c", "m", "r"), on_demand)
    yield dumps.node_pool("batch", dumps.needs(_HOW, "spot", "on-demand"))
    yield dumps.node_pool("memory", dumps.needs(family, "r5", "r6i"), on_demand)
    yield dumps.NODE_CLASS


def _rule(drawn: float, app: str, count: int) -> dict[str, Any]:
    term = {"topologyKey": _HOSTS, "labelSelector": {"matchLabels": {"app": app}}}
    if drawn < 0.25:
        return dumps.spread(app)
    if drawn < 0.35:
        return dumps.spread(app, _HOSTS) if count <= 20 else {}
    if drawn < 0.4:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"affinity": {"podAntiAffinity": required}} if count <= 12 else {}
    if drawn < 0.5:
        weighed = [{"weight": 100, "podAffinityTerm": term}]
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": weighed}
        return {"affinity": {"podAntiAffinity": preferred}}
    return {"nodeSelector": {"kubernetes.io/arch": "amd64"}} if drawn < 0.55 else {}


def main() -> None:
    """Print what one report takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", action="store_true", help="print the dump")
    text = dumps.as_list(dump())
    if parser.parse_args().dump:
        sys.stdout.write(text)
        return
    speed = reference_milliseconds()
    with TemporaryDirectory() as folder:
        # The first run keeps its byte code, as installed code has it.
        _report(folder, dumps.as_list(dumps.mixed()))
        before = _spent()
        _report(folder, text)
        spent = _spent() - before
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    speed = (speed + reference_milliseconds()) / 2
    sys.stdout.write(
        f"{spent:.1f} CPU s, {memory:.0f} MiB; a fixed piece of work takes {speed:.0f} ms of CPU "
        "time\n"
    )


def _report(folder: str, text: str) -> None:
    (Path(folder) / "dump.json").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "functions.cli", "report", "-f", f"{folder}/dump.json"]
    subprocess.run(
        [*command, "--output", f"{folder}/report.html"],
        cwd=ROOT, env=kept_byte_code(folder), check=True, capture_output=True,
    )  # fmt: skip


def _spent() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


if __name__ == "__main__":
    main()
