"""What each workload costs of a plan: its share of the nodes planned for it."""

import itertools
from collections import Counter

from functions.cli.plan.job_pods import is_of_job
from functions.cli.plan.planned import Planned
from functions.cli.plan.svg_plan import workload_of
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.resources import Resources


def workload_costs(planned: Planned) -> dict[str, int]:
    """Return what each workload costs, in micro-dollars per hour; the sum is the plan's cost.

    The price of a node is shared by its pods, by the resource of which each takes most. What runs
    always costs what it costs without Jobs; Jobs cost what the plan with them costs more.
    """
    pods = {pod.uid: pod for pod in planned.snapshot.pending}
    if planned.always is None:
        return _shared(planned.plan, pods)
    found = _shared(planned.always, pods)
    of_jobs = {uid: pod for uid, pod in pods.items() if is_of_job(pod)}
    shares = sorted(_shared(planned.plan, pods, of_jobs).items())
    more = planned.plan.cost_micros_per_hour - planned.cost_without_jobs
    for (name, _), part in zip(shares, _split(more, [share for _, share in shares]), strict=True):
        found[name] += part
    return found


def _shared(plan: Plan, pods: dict[str, Pod], of: dict[str, Pod] | None = None) -> Counter[str]:
    """Return the shares of workloads in the price of a plan.

    Args:
        of: The pods whose shares are returned, all by default.
    """
    cost: Counter[str] = Counter()
    for node in plan.nodes:
        here = [pods[ref.uid] for ref in node.pods]
        for pod, share in zip(here, _shares(node, here), strict=True):
            if of is None or pod.uid in of:
                cost[workload_of(pod)] += share
    return cost


def _shares(node: PlannedNode, pods: list[Pod]) -> list[int]:
    """Return what each pod takes of the price of its node; the sum is the price."""
    room = node.options[0].allocatable
    weights = [max(1, _most_of(pod.scheduling.requests, room)) for pod in pods]
    return _split(node.price_micros_per_hour, weights)


def _split(price: int, weights: list[int]) -> list[int]:
    whole = max(1, sum(weights))
    ends = [price * weight // whole for weight in itertools.accumulate(weights)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _most_of(requests: Resources, room: Resources) -> int:
    """Return the largest share of a resource that is requested, in millionths."""
    return max(
        (amount * 1_000_000 // room[name] for name, amount in requests.items if room[name]),
        default=0,
    )
