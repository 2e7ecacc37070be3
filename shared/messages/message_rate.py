"""How many messages of a forwarder one process serves, so that no cluster takes another's turn.

Functions are shared by all clusters, and the bus takes thousands of messages a second from one
forwarder. Each message is a hint: the queue has the pods, and sweep finds the rest within a minute.
So what is beyond the rate is dropped before anything is read, in about a millisecond.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.messages.wake import Kind


@dataclass(slots=True)
class _Bucket:
    """What one process has left for messages of one kind of one cluster.

    Attributes:
        dropped: Messages since the last one that was served.
    """

    tokens: float
    at: datetime
    dropped: int = 0


# Messages at once, and each second after that. A forwarder sends ten of a kind a second at most;
# its heartbeats come every five minutes, and a pod leads after 20 quiet seconds.
_USUAL: Final = (30.0, 5.0)
_RARE: Final = (3.0, 0.1)
_RATES: Final = {Kind.HEARTBEAT: _RARE, Kind.POD_PENDING: _RARE}
_MOST_BUCKETS: Final = 1000


class MessageRate:
    """Counts the messages of each cluster and kind that one process gets."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, Kind], _Bucket] = OrderedDict()

    def dropped_before(self, cluster: str, kind: Kind, now: datetime) -> int | None:
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
