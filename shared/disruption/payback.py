"""Whether a change of nodes pays for itself while the pods that it moves are there."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from shared.disruption.candidates import PLAIN_POD_COST, Candidate
from shared.disruption.settings import DisruptionSettings
from shared.model.kubernetes.pods import Pod

_SECONDS_PER_HOUR: Final = 3600
# From the launch of a node until pods have moved to it; a drain takes half of that.
_BOOT_SECONDS: Final = 120


def pays_back(
    group: Sequence[Candidate],
    cost_micros_per_hour: int,
    settings: DisruptionSettings,
    now: datetime,
) -> bool:
    """Return whether a change of nodes is expected to save more than it costs.

    Run times of containers are heavy-tailed: those that have run longest run on for longest. So a
    pod is expected to stay for as long as it has been there, and a node would be needed for the
    age of its oldest pod; for that long the change saves what its pods cost less elsewhere.
    It costs

    * the new nodes while they boot and half of that for the old ones, which drain meanwhile,
    * the price of each eviction,
    * and the nodes with pods of Jobs for as long as these have run: they begin again.

    Where evictions have no price, saving is enough.

    Source: Tirmazi and others, "Borg: the next generation", EuroSys 2020, section 7
    (https://doi.org/10.1145/3342195.3387517, 2026-12).

    Args:
        group: The nodes to remove.
        cost_micros_per_hour: What is launched for their pods.
        now: When the pods have their age.
    """
    if not settings.eviction_cost_micros:
        return True
    price = sum(candidate.price_micros_per_hour for candidate in group)
    needed = again = evictions = 0.0
    for candidate in group:
        needed += candidate.price_micros_per_hour * _oldest_seconds(candidate.pods, now)
        jobs = (pod for pod in candidate.pods if pod.is_of_job)
        again += candidate.price_micros_per_hour * _oldest_seconds(jobs, now)
        evictions += candidate.disruption_cost / PLAIN_POD_COST * settings.eviction_cost_micros
    both = (cost_micros_per_hour + price / 2) * _BOOT_SECONDS
    cost = both + evictions * _SECONDS_PER_HOUR + again
    return (price - cost_micros_per_hour) * needed >= cost * price


def _oldest_seconds(pods: Iterable[Pod], now: datetime) -> float:
    """Return the age of the oldest pod, 0 without one."""
    return max((_age_seconds(pod, now) for pod in pods), default=0.0)


def _age_seconds(pod: Pod, now: datetime) -> float:
    return 0.0 if pod.created_at is None else max((now - pod.created_at).total_seconds(), 0.0)
