"""The forwarder's metrics in the text format of Prometheus.

The price of a node comes from its annotation: the price in the decision that launched it.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (2026-11), text format
0.0.4.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from functions.forwarder.observer import Observer
from functions.forwarder.outgoing_messages import OutgoingMessages
from functions.forwarder.views import NodeView

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MICROS: Final = 1_000_000
_ESCAPED: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_Labels = Mapping[str, str]
_Sample = tuple[_Labels, float]


class _Kind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"


class _State(StrEnum):
    """How far a node has come, as `kubectl describe` shows it."""

    LAUNCHED = "launched"
    READY = "ready"
    INITIALIZED = "initialized"
    EMPTY = "empty"
    TERMINATING = "terminating"


def metrics_text(observer: Observer, outgoing: OutgoingMessages, now: datetime) -> str:
    """Return all metrics as text; nodes are Dovetail's, by their Provisioner or NodePool.

    Args:
        observer: What was seen in the cluster.
        outgoing: The message queue with its counters.
        now: The current time.
    """
    nodes = observer.nodes
    return "".join(
        line
        for name, kind, about, samples in (
            ("dovetail_nodes", _Kind.GAUGE, "Nodes by owner and state.", _nodes(observer, nodes)),
            (
                "dovetail_price_dollars_per_hour",
                _Kind.GAUGE,
                "Price of the nodes by owner, as it was when they were launched.",
                _prices(nodes),
            ),
            (
                "dovetail_pods_waiting",
                _Kind.GAUGE,
                "Pods marked unschedulable that wait for capacity.",
                _single(observer.waiting_pods),
            ),
            (
                "dovetail_owner_held",
                _Kind.GAUGE,
                "1 for a Provisioner or NodePool that is paused or in shadow mode.",
                [({"owner": owner.key}, float(owner.paused)) for owner in observer.owners],
            ),
            (
                "dovetail_forwarder_synced",
                _Kind.GAUGE,
                "1 while pods, nodes, Provisioners and NodePools have all been read and still are.",
                _single(observer.is_current(now)),
            ),
            (
                "dovetail_forwarder_objects_unsent",
                _Kind.GAUGE,
                "Objects that messages are still to be sent about.",
                _single(len(outgoing)),
            ),
            (
                "dovetail_forwarder_messages_sent_total",
                _Kind.COUNTER,
                "Messages that the event bus has accepted.",
                _single(outgoing.sent),
            ),
            (
                "dovetail_forwarder_messages_retried_total",
                _Kind.COUNTER,
                "Messages that the event bus refused or did not answer, sent again later.",
                _single(outgoing.failures),
            ),
            (
                "dovetail_forwarder_objects_dropped_total",
                _Kind.COUNTER,
                "Objects dropped because too many were unsent; sweep finds them.",
                _single(outgoing.dropped),
            ),
        )
        for line in _lines(name, kind, about, samples)
    )


def _nodes(observer: Observer, nodes: Iterable[NodeView]) -> list[_Sample]:
    counts = Counter((node.provisioner, _state(observer, node)) for node in nodes)
    return [
        ({"owner": owner, "state": state}, count)
        for (owner, state), count in sorted(counts.items())
    ]


def _prices(nodes: Iterable[NodeView]) -> list[_Sample]:
    prices: Counter[str] = Counter()
    for node in nodes:
        prices[node.provisioner] += node.price_micros
    return [({"owner": owner}, micros / _MICROS) for owner, micros in sorted(prices.items())]


def _state(observer: Observer, node: NodeView) -> _State:
    if node.deleting:
        return _State.TERMINATING
    if not node.ready:
        return _State.LAUNCHED
    if not node.initialized:
        return _State.READY
    return _State.EMPTY if observer.is_empty(node) else _State.INITIALIZED


def _single(value: float) -> list[_Sample]:
    return [({}, float(value))]


def _lines(name: str, kind: _Kind, help_text: str, samples: Sequence[_Sample]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        shown = ",".join(f'{key}="{text.translate(_ESCAPED)}"' for key, text in labels.items())
        yield f"{name}{{{shown}}} {value:.10g}\n" if shown else f"{name} {value:.10g}\n"
