"""Limits how many messages of a forwarder a process serves, so that no cluster starves the others.

Functions are shared by all clusters, and the bus accepts thousands of messages a second from one
forwarder. Each message is a hint: the queue has the pods, and sweep finds the rest within a minute.
So messages beyond the rate are dropped before anything is read, in about a millisecond.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Final

from msgspec import Struct

from shared.model.messages.message import FAST, MessageKind


class _Bucket(Struct):
    """Token bucket of a process for messages of one kind of one cluster.

    Attributes:
        dropped: Messages dropped since the last served message.
    """

    tokens: float
    at: datetime
    dropped: int = 0


# Burst, and messages a second. A forwarder sends at most ten of a kind a second; its heartbeats
# come every five minutes, and a pod-pending message is leading after 20 quiet seconds.
_USUAL: Final = (30.0, 5.0)
_RARE: Final = (3.0, 0.1)
_RATES: Final = dict.fromkeys((MessageKind.HEARTBEAT, *FAST), _RARE)
_MOST_BUCKETS: Final = 1000


class MessageRate:
    """Counts the messages of each cluster and kind that one process gets."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, MessageKind], _Bucket] = OrderedDict()

    def dropped_before(self, cluster: str, kind: MessageKind, now: datetime) -> int | None:
        """Count a message; return how many were dropped before it, None if it is dropped, too."""
        most, per_second = _RATES.get(kind, _USUAL)
        bucket = self._buckets.pop((cluster, kind), None) or _Bucket(most, now)
        self._buckets[cluster, kind] = bucket
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        passed = max((now - bucket.at).total_seconds(), 0.0)
        bucket.tokens, bucket.at = min(bucket.tokens + passed * per_second, most), now
        if bucket.tokens < 1:
            bucket.dropped += 1
            return None
        bucket.tokens -= 1
        dropped, bucket.dropped = bucket.dropped, 0
        return dropped
