"""Splits the price of nodes among namespaces by what pods request."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from shared.model.resources import CPU, MEMORY, PLAIN, Resources
from shared.provisioning.savings.inventory import FilledNode

DAEMONSETS: Final = "DaemonSets"
UNUSED: Final = "requested by no pod"
_HUGE_PAGES: Final = "hugepages-"
_ATTACHMENTS: Final = "attachable-volumes-"


def shares_by_namespace(nodes: Iterable[FilledNode]) -> Mapping[str, int]:
    """Return micro-dollars per hour by namespace, what DaemonSets take, and what no pod requests.

    A pod pays the mean of its shares of the node's cpu, memory and each kind of device. The sums
    are exact: all entries together are the price of the nodes.
    """
    found: Counter[str] = Counter()
    for node in nodes:
        found.update(_split(node))
    return {name: found[name] for name in sorted(found)}


def _split(node: FilledNode) -> Mapping[str, int]:
    price = node.price_micros_per_hour or 0
    shares: dict[str, Fraction] = {DAEMONSETS: _share(node.daemons, node.allocatable)}
    for pod in node.pods:
        part = _share(pod.scheduling.requests, node.allocatable)
        shares[pod.namespace] = shares.get(pod.namespace, Fraction(0)) + part
    # Requests may exceed what a node has, for example after its allocatable resources shrank.
    whole = max(Fraction(1), sum(shares.values(), Fraction(0)))
    paid = {name: int(price * part / whole) for name, part in shares.items()}
    return {**paid, UNUSED: price - sum(paid.values())}


def _share(requests: Resources, allocatable: Resources) -> Fraction:
    devices = [
        name
        for name in allocatable
        if name not in PLAIN and not name.startswith((_HUGE_PAGES, _ATTACHMENTS))
    ]
    parts = [
        Fraction(requests[name], allocatable[name])
        for name in (CPU, MEMORY, *devices)
        if allocatable[name] > 0
    ]
    return sum(parts, Fraction(0)) / len(parts) if parts else Fraction(0)
