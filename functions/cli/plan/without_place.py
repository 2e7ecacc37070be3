"""Pods that have no place in a plan, by workload, and why."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from functions.cli.plan.planned import Planned
from functions.cli.plan.svg_plan import workload_of
from shared.model.dollars_and_counts import counted

_MOST_ROWS: Final = 20


class WithoutPlace(Struct, frozen=True, kw_only=True):
    """Pods of a workload that have no place for the same reasons.

    Attributes:
        workload: As namespace/name.
        pods: Likewise, sorted.
        reasons: As a plan says them, one for each owner or one for all.
    """

    workload: str
    pods: tuple[str, ...]
    reasons: tuple[str, ...]


def without_place(
    planned: Planned, counts: Callable[[str], bool] = lambda _: True
) -> tuple[WithoutPlace, ...]:
    """Return the pods without a place, sorted by workload.

    Args:
        counts: Whether a pod (namespace/name) is among those asked about.
    """
    pods = {pod.uid: pod for pod in planned.snapshot.pending}
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for left in planned.plan.unschedulable:
        if counts(left.pod.key):
            workload = workload_of(pods[left.pod.uid])
            found.setdefault((workload, left.reasons), []).append(left.pod.key)
    return tuple(
        WithoutPlace(workload=workload, pods=tuple(sorted(names)), reasons=reasons)
        for (workload, reasons), names in sorted(found.items())
    )


def without_place_lines(found: Sequence[WithoutPlace]) -> Iterator[str]:
    """Yield a line for each workload and its reasons, the first twenty."""
    for left in found[:_MOST_ROWS]:
        many = counted(len(left.pods), "pod")
        yield f"no place for {many} of {left.workload}: {'; '.join(left.reasons)}"
    if (more := len(found) - _MOST_ROWS) > 0:
        yield f"no place for pods of {counted(more, 'more workload')}"
