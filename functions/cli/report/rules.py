"""What the rules of running workloads cost: the nodes of their pods, planned again without each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from functions.cli.plan.cost_of_rules import (
    MOST_RULES,
    Rule,
    RuleCost,
    RuleKind,
    costs_of_rules,
    rules_of,
)
from functions.cli.plan.svg_plan import workload_of
from functions.cli.plan.what_if import totals
from functions.cli.report.carrying_out import carry_out
from functions.cli.report.repacking import PoolPlan
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, MEMORY
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.provisioning.savings.pools import Pool

# Of all plans together: a second or two of one processor.
MOST_PODS: Final = 6_000


class RuleInPool(Struct, frozen=True, kw_only=True):
    """A rule of the pods of a workload in one pool, and what it costs.

    Attributes:
        pod: One of these pods.
        nodes: The number of nodes that have such pods in the plan with the rule.
    """

    pool: Pool
    rule: Rule
    pod: Pod
    nodes: int
    cost: RuleCost


class RulesCost(Struct, frozen=True, kw_only=True):
    """What rules cost, the dearest first.

    Attributes:
        untried: Workload and name of each rule for which no plan was made.
    """

    rules: tuple[RuleInPool, ...] = ()
    untried: tuple[tuple[str, str], ...] = ()


class _Candidate(Struct, frozen=True, kw_only=True):
    """A rule, with the planned nodes of its pods.

    Attributes:
        at_most: An estimate of what it could cost, in micro-dollars per hour.
        implied: Whether every node that the pool may launch satisfies it: it costs nothing.
    """

    plan: PoolPlan
    rule: Rule
    pod: Pod
    nodes: tuple[PlannedNode, ...]
    at_most: int
    implied: bool


def rules_cost(plans: Iterable[PoolPlan], decide: Callable[[ClusterSnapshot], Plan]) -> RulesCost:
    """Return what the rules of the pods cost in the plans, the dearest first.

    Only the nodes that have pods of the workload are planned again without the rule, for all of
    their pods; the other nodes stay. So each saving is that of a whole plan for the cluster, which
    other nodes might make larger. Those rules are tried first that could cost most: a rule leaves
    room free on nodes, or asks for dear ones.

    Args:
        plans: Of each pool.
        decide: Returns the plan for a snapshot.
    """
    found = [candidate for plan in plans for candidate in _candidates(plan)]
    found.sort(key=lambda one: (-one.at_most, one.plan.pool, one.rule.workload, one.rule.name))
    tried, left = _within_bounds(found)
    costs = sorted(
        (_cost(one, decide) for one in tried),
        key=lambda one: (
            -one.cost.cost_micros_per_hour, one.pool, one.rule.workload, one.rule.name
        )
    )  # fmt: skip
    return RulesCost(
        rules=tuple(costs), untried=tuple((one.rule.workload, one.rule.name) for one in left)
    )


def _within_bounds(
    found: Iterable[_Candidate],
) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return the candidates to try, those whose pods fit what may be planned in all, and others."""
    tried: list[_Candidate] = []
    left: list[_Candidate] = []
    pods = rules = 0
    for one in found:
        more = 0 if one.implied else sum(len(node.pods) for node in one.nodes)
        fits = one.implied or (pods + more <= MOST_PODS and rules < MOST_RULES)
        (tried if fits else left).append(one)
        if fits and not one.implied:
            pods, rules = pods + more, rules + 1
    return tried, left


def _candidates(plan: PoolPlan) -> Iterator[_Candidate]:
    workloads = {pod.uid: workload_of(pod) for pod in plan.snapshot.pending}
    nodes: dict[str, list[PlannedNode]] = {}
    for node in plan.plan.nodes:
        for workload in {workloads[ref.uid]: None for ref in node.pods}:
            nodes.setdefault(workload, []).append(node)
    first: dict[str, Pod] = {}
    for pod in plan.snapshot.pending:
        first.setdefault(workloads[pod.uid], pod)
    requested = [node.requests for node in plan.plan.nodes]
    whole = {name: sum(one[name] for one in requested) for name in (CPU, MEMORY)}
    for rule in rules_of(plan.snapshot):
        # Pods on nodes that they keep are not planned anew.
        if on := tuple(nodes.get(rule.workload, ())):
            price = sum(node.price_micros_per_hour for node in on)
            shares = [
                sum(node.requests[name] for node in on) / total for name, total in whole.items()
                if total
            ]  # fmt: skip
            usual = plan.plan.cost_micros_per_hour * sum(shares) / max(1, len(shares))
            yield _Candidate(
                plan=plan,
                rule=rule,
                pod=first[rule.workload],
                nodes=on,
                at_most=max(sum(map(_free, on)), round(price - usual)),
                implied=_is_implied(rule, first[rule.workload], plan.snapshot.provisioners[0]),
            )


def _is_implied(rule: Rule, pod: Pod, owner: Provisioner) -> bool:
    """Return whether what a pod asks of nodes is what its pool requires of them anyway."""
    if rule.kind != RuleKind.NODES:
        return False
    asked = pod.scheduling
    terms = (asked.node_selector, *asked.required_terms)
    return all(
        (own := owner.requirements.get(item.key)) is not None and own.intersect(item) == own
        for requirements in terms
        for item in requirements
    )


def _free(node: PlannedNode) -> int:
    """Return what is paid for room that no pod requests."""
    allocatable = node.options[0].allocatable
    used = node.requests + node.daemon_requests
    share = max(used[name] / max(1, allocatable[name]) for name in (CPU, MEMORY))
    return round(node.price_micros_per_hour * max(0.0, 1 - share))


def _cost(one: _Candidate, decide: Callable[[ClusterSnapshot], Plan]) -> RuleInPool:
    """Return what a rule costs, at least nothing."""
    part = Plan(
        nodes=one.nodes,
        cost_micros_per_hour=sum(node.price_micros_per_hour for node in one.nodes),
    )
    nodes = len(one.nodes)
    # Without a rule the nodes may also stay as they are.
    cost = stays = RuleCost(
        workload=one.rule.workload,
        rule=one.rule.name,
        cost_micros_per_hour=0,
        pods_left_out=0,
        without=totals(part),
    )
    if not one.implied:
        (cost,) = costs_of_rules(_of_nodes(one.plan, one.nodes), (one.rule,), part, decide)
    if cost.without.waiting or cost.cost_micros_per_hour < 0:
        cost = stays
    return RuleInPool(pool=one.plan.pool, rule=one.rule, pod=one.pod, nodes=nodes, cost=cost)


def _of_nodes(plan: PoolPlan, nodes: Sequence[PlannedNode]) -> ClusterSnapshot:
    """Return the snapshot in which only the pods of these nodes are pending; the others run."""
    snapshot = plan.snapshot
    moving = {ref.uid for node in nodes for ref in node.pods}
    staying = tuple(
        node for node in plan.plan.nodes if not moving.intersection(ref.uid for ref in node.pods)
    )
    result = carry_out(
        replace(plan.plan, nodes=staying),
        [f"planned-{number}" for number in range(len(staying))],
        snapshot.provisioners,
        snapshot.instance_types,
        snapshot.taken_at,
    )
    return replace(
        snapshot,
        pending=tuple(pod for pod in snapshot.pending if pod.uid in moving),
        bound=(
            *snapshot.bound,
            *(
                replace(pod, node_name=result.places[pod.uid])
                for pod in snapshot.pending
                if pod.uid in result.places
            ),
        ),
        nodes=tuple(
            replace(node, unschedulable=True) for node in (*snapshot.nodes, *result.launched)
        ),
    )
