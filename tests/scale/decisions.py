"""What decisions take in S3, with a plan every ten seconds for an hour."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from functions.cli.plan.recorded_decision import load_decision
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.bases import DecisionWriter
from shared.snapshot.gather import gather
from tests.fakes.decisions import FakeDecisions
from tests.scale.apiserver import large_cluster
from tests.scale.world import LargeCluster

EVERY: Final = timedelta(seconds=10)
PLANS: Final = 360
_PODS: Final = 10
# A kubelet writes its node's status so often, though nothing has changed.
# Source: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ (2026-11-25).
_REPORT: Final = timedelta(minutes=5)


def decisions_of_an_hour(nodes: int) -> dict[str, float]:
    """Write the decisions of an hour in which ten pods wait every ten seconds, and are bound.

    Pods are bound where others of their workload ended, all over the cluster.

    Returns:
        What a day of such hours takes, and whether the oldest decision is decided again the same.
    """
    with large_cluster(nodes) as url:
        cluster = LargeCluster(url, "provision")
        cluster.pods_arrive(_PODS)
        seen = gather(cluster.ports, "plan-0").snapshot
    kept, writer, settings = FakeDecisions(), DecisionWriter(small=0), PackingSettings()
    plan = decide(seen, settings)
    keys = []
    for number in range(PLANS):
        keys.append(writer.write(kept, f"plan-{number:04}", seen, plan, settings))
        seen = _later(seen, number)
    sizes = {key: len(document) for key, document in kept.documents.items()}
    oldest = load_decision(kept.get(keys[0]), kept.get)
    return {
        "a day, GB": 24 * sum(sizes.values()) / 1e9,
        "largest decision, KB": max(sizes[key] for key in keys) / 1000,
        "bases": len(sizes) - len(keys),
        "a base, KB": max(size for key, size in sizes.items() if key not in keys) / 1000,
        "oldest is byte-equal": float(oldest.is_identical(oldest.replay())),
    }


def _later(seen: ClusterSnapshot, number: int) -> ClusterSnapshot:
    """Return the cluster at the next plan: as many pods ended as were bound, kubelets reported."""
    step = max(1, len(seen.bound) // _PODS)
    ended = {(number * 7919 + place * step) % len(seen.bound) for place in range(_PODS)}
    came = [
        replace(
            pod,
            name=f"{pod.name[:-6]}{number:05}{place}",
            uid=f"{number:08x}-0000-4000-8000-{place:012x}",
            node_name=seen.bound[left].node_name,
            phase="Running",
        )
        for place, (pod, left) in enumerate(zip(seen.pending, sorted(ended), strict=True))
    ]
    stayed: Sequence[Pod] = [pod for place, pod in enumerate(seen.bound) if place not in ended]
    reports = max(1, round(len(seen.nodes) * (EVERY / _REPORT)))
    first = number * reports % len(seen.nodes)
    return replace(
        seen,
        taken_at=seen.taken_at + EVERY,
        bound=tuple(sorted((*stayed, *came), key=lambda pod: (pod.key, pod.uid))),
        nodes=tuple(
            replace(node, resource_version=f"{10**9 + number}")
            if 0 <= place - first < reports
            else node
            for place, node in enumerate(seen.nodes)
        ),
    )
