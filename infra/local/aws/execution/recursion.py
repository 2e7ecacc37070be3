"""Recursive loop detection: which functions a chain of requests has invoked, and how often.

Lambda counts its invocations in the trace header, which the SDK passes on and SQS keeps with the
message. From the seventeenth invocation of a function in one chain on it refuses, unless the
function allows loops. Chains over EventBridge and Step Functions are not followed.
Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html and
https://aws.amazon.com/blogs/compute/detecting-and-stopping-recursive-loops-in-aws-lambda-functions/
(2026-11). How Lambda counts a batch whose messages have different chains is not documented; here
the batch has the highest count of its messages.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable

MOST_INVOCATIONS = 16
_FIELD = "Lineage="


class RecursiveLoopError(Exception):
    """RecursiveInvocationException: the chain has invoked the function 16 times already."""


def continued(arn: str, headers: Iterable[str], *, allowed: bool) -> str:
    """Return the trace header of a function's next invocation."""
    counts: Counter[str] = Counter()
    for header in headers:
        counts |= _counts(header)
    name = hashlib.sha256(arn.encode()).hexdigest()[:8]
    counts[name] += 1
    if counts[name] > MOST_INVOCATIONS and not allowed:
        raise RecursiveLoopError(
            f"Lambda found {arn} in a recursive loop: invoked {MOST_INVOCATIONS} times in one chain"
        )
    lineage = "|".join(f"{key}:{count}" for key, count in sorted(counts.items()))
    return f"Root=1-{int(time.time()):08x}-{'0' * 24};Sampled=0;{_FIELD}{lineage}"


def _counts(header: str) -> Counter[str]:
    parts = [part.removeprefix(_FIELD) for part in header.split(";") if part.startswith(_FIELD)]
    rows = [row.rpartition(":") for part in parts for row in part.split("|")]
    return Counter({name: int(count) for name, _, count in rows if count.isdigit()})
