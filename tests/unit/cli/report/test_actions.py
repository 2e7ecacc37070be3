"""What to do: edits of NodePools and workloads, each with its plan and its YAML."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from functions.cli.plan.cost_of_rules import RuleKind, rules_of
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.running_cluster import read_running_cluster
from functions.cli.report.actions import CostAction, changed_nodes_text
from functions.cli.report.cost_report import (
    REPACK_SETTINGS,
    Alternative,
    CostReport,
    cost_report,
)
from functions.cli.report.edited_manifests import (
    WorkloadPatch,
    consolidating,
    manifest_yaml,
    patch_without,
    with_requirements,
)
from functions.cli.report.edits import dropped_text, edits_of, with_edits
from functions.cli.report.owners import owners_of, pools_of, within_architectures
from functions.cli.report.repacking import Outcome, Repacking, cheaper_of, joined
from functions.cli.report.rules import rules_cost
from shared.instance_types.catalog import embedded_catalog
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.model.ec2.instance_types import CapacityType
from shared.model.plan import Plan
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.provisioning.savings.inventory import FilledNode
from shared.provisioning.savings.pools import Pool, PoolKind
from tests.unit.cli.dumps import (
    NODE_CLASS,
    Object,
    budget,
    karpenter,
    mixed,
    needs,
    node,
    node_groups,
    node_pool,
    spread,
    with_daemons,
    workload,
)

CATALOG = embedded_catalog()
FAMILY = "karpenter.k8s.aws/instance-family"
SIZE = "karpenter.k8s.aws/instance-size"
HOW = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def reported(*objects: Object) -> CostReport:
    documents = [Document(where="dump", raw=raw) for raw in objects]
    found = read_running_cluster(documents, CATALOG)
    return cost_report(found.snapshot, found.budgets, (), found.manifests)


@cache
def of_karpenter() -> CostReport:
    return reported(*karpenter())


def action(report: CostReport, words: str) -> CostAction:
    return next(found for found in report.actions.listed if words in found.title)


def pool_nodes(count: int, of_type: str = "m5.2xlarge", pool: str = "web") -> list[Object]:
    labels = {"karpenter.sh/nodepool": pool, HOW: "on-demand"}
    return [node(f"{pool}-{n}", of_type, "abc"[n % 3], labels) for n in range(count)]


def test_actions_are_those_that_save_most_and_each_saves_enough() -> None:
    report = of_karpenter()
    savings = [found.saving_micros_per_hour for found in report.actions.listed]
    assert savings == sorted(savings, reverse=True)
    base = report.alternatives[Alternative.REPACKED].cost_micros_per_hour
    assert min(savings) >= base // 100
    assert 3 <= len(savings) <= 10


def test_the_saving_of_an_edit_is_that_of_its_own_plan() -> None:
    documents = [Document(where="dump", raw=raw) for raw in karpenter()]
    snapshot = read_running_cluster(documents, CATALOG).snapshot
    pools = pools_of(snapshot.nodes)
    pool = next(found for found in pools if found.name == "general")
    declared = owners_of(snapshot, pools)[pool]
    owner = within_architectures(declared, pools[pool])
    repack = Repacking(snapshot, pools)
    (spot,) = (found for found in edits_of(owner, snapshot) if "spot" in found.title)
    before, after = (
        repack.of_pool(pool, one, REPACK_SETTINGS).outcome for one in (owner, spot.edited(owner))
    )
    edit = action(of_karpenter(), "general: allow spot")
    assert edit.saving_micros_per_hour == before.cost_micros_per_hour - after.cost_micros_per_hour
    assert "interrupts" in edit.risk


def test_arm64_is_an_action_of_its_own_where_pools_name_no_architecture() -> None:
    report = of_karpenter()
    planned = [node for outcome in report.alternatives.values() for node in outcome.nodes]
    types = {CATALOG.get(found.instance_type) for found in planned}
    assert {found.labels["kubernetes.io/arch"] for found in types if found} == {"amd64"}
    found = action(report, "general: allow arm64 instances")
    assert found.risk.startswith("Images must be multi-architecture")
    written = yaml.safe_load(found.manifest)["spec"]["template"]["spec"]["requirements"]
    assert written[-1] == needs("kubernetes.io/arch", "amd64", "arm64")


def test_the_yaml_of_an_edit_is_the_declared_object_with_one_requirement_changed() -> None:
    declared = karpenter()[0]
    written = yaml.safe_load(action(of_karpenter(), "allow spot").manifest)
    edited = written["spec"]["template"]["spec"]["requirements"][-1]
    assert edited == needs(HOW, "on-demand", "spot")
    written["spec"]["template"]["spec"]["requirements"][-1] = needs(HOW, "on-demand")
    assert written == declared


def test_pods_that_a_budget_holds_are_an_action_of_their_own() -> None:
    found = action(of_karpenter(), "after freeing 3 nodes that pods or annotations keep")
    assert "PodDisruptionBudget ledger holds pod payments/ledger-0" in found.how
    assert found.manifest == ""


def test_of_a_node_group_the_group_is_named_instead_of_yaml() -> None:
    report = reported(*node_groups())
    found = action(report, "general: allow spot")
    assert found.manifest == ""
    assert "change managed node group general where it is defined" in found.how
    smaller = action(report, "general: remove 9 of 15 nodes")
    assert smaller.how == (
        "Drain them one by one; managed node group general gets the size 6 where it is defined."
    )


def test_a_rule_of_a_workload_in_two_pools_is_one_action() -> None:
    report = reported(*mixed())
    found = [entry for entry in report.actions.listed if entry.title.startswith("shop/web")]
    rules = [one for one in report.rules.rules if one.rule.workload == "shop/web"]
    assert len(rules) == 2
    assert [entry.saving_micros_per_hour for entry in found] == [
        sum(one.cost.cost_micros_per_hour for one in rules)
    ]
    patch = yaml.safe_load(found[0].manifest)
    assert patch["spec"]["template"]["spec"] == {
        "topologySpreadConstraints": [{"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]
    }


def test_on_a_node_pool_a_rule_is_taken_out_as_karpenter_keeps_preferences() -> None:
    nodes = pool_nodes(6)
    objects = [node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand")), NODE_CLASS, *nodes]
    report = reported(
        *objects, *workload("shop", "web", 6, nodes, "100m", "1Gi", **spread("web", HOST))
    )
    found = action(report, "shop/web: drop its topology spread")
    assert yaml.safe_load(found.manifest)["spec"]["template"]["spec"] == {
        "topologySpreadConstraints": [{"topologyKey": HOST, "$patch": "delete"}]
    }
    assert found.risk.startswith("More of its pods may share a node, and end with it. It is taken")


def test_a_rule_on_other_nodes_than_types_and_zones_is_no_choice() -> None:
    labels = {"eks.amazonaws.com/nodegroup": "g", "team": "blue"}
    nodes = [node(f"n{n}", "m5.large", "a", labels) for n in range(2)]
    nodes += [node("big", "m5.24xlarge", "a", labels)]

    def titles(**selector: str) -> str:
        pods = workload("shop", "web", 2, nodes, "500m", "1Gi", nodeSelector=selector)
        return "; ".join(found.title for found in reported(*nodes, *pods).actions.listed)

    kind = "node.kubernetes.io/instance-type"
    assert "shop/web: drop its node selector" in titles(**{kind: "m5.24xlarge"})
    assert "shop/web" not in titles(**{kind: "m5.24xlarge", "team": "blue"})


def test_nodes_that_only_lose_what_is_empty_are_consolidated_by_an_edit() -> None:
    nodes = pool_nodes(4)
    pool = node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand"))
    pool["spec"]["disruption"] = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}
    pods = workload("shop", "web", 4, nodes, "500m", "1Gi")
    found = action(reported(pool, NODE_CLASS, *nodes, *pods), "let consolidation replace all 4")
    assert yaml.safe_load(found.manifest)["spec"]["disruption"] == {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "30s",
    }


@pytest.mark.parametrize(
    ("version", "kind", "spec", "edited"),
    [
        ("v1alpha5", "Provisioner", {"ttlSecondsAfterEmpty": 30},
         {"consolidation": {"enabled": True}}),
        ("v1alpha5", "Provisioner", {"consolidation": {"enabled": True}}, None),
        ("v1", "NodePool", {}, None),
        ("v1", "NodePool", {"disruption": {"consolidateAfter": "Never"}},
         {"disruption": {"consolidateAfter": "1m"}}),
        ("v1beta1", "NodePool",
         {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"}},
         {"disruption": {"consolidationPolicy": "WhenUnderutilized"}}),
        ("v1", "NodePool", {"disruption": {"budgets": [{"nodes": "0"}, {"nodes": "5"}]}},
         {"disruption": {"budgets": [{"nodes": "10%"}, {"nodes": "5"}]}}),
        ("v1", "NodePool",
         {"disruption": {"budgets": [{"nodes": "0", "schedule": "@daily", "duration": "1h"}]}},
         None),
    ],
)  # fmt: skip
def test_what_forbids_consolidation_is_edited(
    version: str, kind: str, spec: Mapping[str, Any], edited: Mapping[str, Any] | None
) -> None:
    found = consolidating({"apiVersion": f"karpenter.sh/{version}", "kind": kind, "spec": spec})
    assert (None if found is None else found["spec"]) == edited


def test_each_edit_gives_yaml_that_reads_as_what_was_planned() -> None:
    raw = node_pool(
        "web", needs(FAMILY, "m5", "m6g"), needs(SIZE, "large"), needs(ZONE, "us-east-1a"),
        needs(HOW, "on-demand"), needs("kubernetes.io/arch", "amd64"),
    )  # fmt: skip
    classes = {"default": NODE_CLASS}
    owner = decode_node_pool(raw, classes)
    nodes = [node(f"n{zone}", "m5.large", zone, {}) for zone in "ab"]
    snapshot = read_running_cluster([Document(where="d", raw=n) for n in nodes], CATALOG).snapshot
    edits = list(edits_of(owner, snapshot))
    assert len(edits) == 5
    for some in ([], *([edit] for edit in edits), edits):
        planned = with_edits(owner, some).requirements
        again = decode_node_pool(with_requirements(raw, owner.requirements, planned), classes)
        assert again.requirements == planned
    assert not list(edits_of(with_edits(owner, edits), snapshot))


def test_the_risk_of_an_edit_names_what_it_drops() -> None:
    generation, category = (
        f"karpenter.k8s.aws/instance-{key}" for key in ("generation", "category")
    )
    sizes = {"key": SIZE, "operator": "NotIn", "values": ["24xlarge"]}
    newer = {"key": generation, "operator": "Gt", "values": ["4"]}
    cpus = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["17"]}
    exists = {"key": FAMILY, "operator": "Exists"}
    before = decode_node_pool(
        node_pool("web", needs(category, "m"), sizes, newer, cpus, exists), {"default": NODE_CLASS}
    ).requirements
    kept = [item for item in before if item.key.endswith("tenancy")]
    wider = Requirement.of(category, "c", "m", "r"), Requirement.parse(generation, "Gt", ["2"])
    after = Requirements.of((*kept, *wider))
    dropped = dropped_text(before, after)
    assert sorted(dropped.split("; ")) == [
        "instance-category in m (then in c, m, r)",
        "instance-cpu < 17",
        "instance-family exists",
        "instance-generation > 4 (then > 2)",
        "instance-size not in 24xlarge",
    ]


def test_what_the_api_server_wrote_is_left_out_of_yaml() -> None:
    raw = {**node_pool("web"), "status": {"nodes": 3}}
    raw["metadata"] |= {"uid": "u", "annotations": {"karpenter.sh/nodepool-hash": "1"}}
    assert yaml.safe_load(manifest_yaml(raw)) == node_pool("web")
    raw["metadata"]["annotations"]["mine"] = "kept"
    assert yaml.safe_load(manifest_yaml(raw))["metadata"]["annotations"] == {"mine": "kept"}


TERM = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
OTHER = {**TERM, "topologyKey": ZONE}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "kind", "softened", "patched"),
    [
        ({"affinity": {"podAntiAffinity": {REQUIRED: [TERM, OTHER]}}}, RuleKind.ANTI_AFFINITY, True,
         {"affinity": {"podAntiAffinity": {
             REQUIRED: [OTHER], PREFERRED: [{"weight": 100, "podAffinityTerm": TERM}]}}}),
        ({"affinity": {"podAffinity": {REQUIRED: [TERM]}}}, RuleKind.AFFINITY, False,
         {"affinity": {"podAffinity": {REQUIRED: None}}}),
        ({"nodeSelector": {"a": "b"}}, RuleKind.NODES, False, {"nodeSelector": None}),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [needs("a", "b")]}]}}}}, RuleKind.NODES, False,
         {"affinity": {"nodeAffinity": {REQUIRED: None}}}),
        ({"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}},
          "topologySpreadConstraints": [
              {**TERM, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
         RuleKind.PREFERENCES, False,
         {"affinity": {"podAntiAffinity": {PREFERRED: None}},
          "topologySpreadConstraints": [{"topologyKey": HOST, "$patch": "delete"}]}),
    ],
)  # fmt: skip
def test_a_patch_has_the_fields_without_the_rule(
    spec: Mapping[str, Any],
    kind: RuleKind,
    softened: bool,  # noqa: FBT001 -- a parameter of the test
    patched: Mapping[str, Any],
) -> None:
    snapshot = waiting(**spec)
    rule = next(found for found in rules_of(snapshot) if found.kind == kind)
    written = patch_without(snapshot.pending[0], spec, rule, softened=softened)
    assert written is not None
    assert yaml.safe_load(written.manifest)["spec"]["template"]["spec"] == patched


def waiting(
    name: str = "web",
    kind: str = "StatefulSet",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> ClusterSnapshot:
    """Return a snapshot in which one pod of a workload waits."""
    nowhere = [{"metadata": {"name": ""}}]
    (found,) = workload("shop", name, 1, nowhere, "1", "1Gi", kind=kind, **spec)
    found["metadata"]["labels"] |= labels or {}
    objects = (node("n", "m5.large", "a", {}), found)
    return read_running_cluster([Document(where="d", raw=o) for o in objects], CATALOG).snapshot


def test_a_patch_names_the_workload_or_is_left_to_who_defines_it() -> None:
    def patch(name: str, kind: str, **labels: str) -> WorkloadPatch | None:
        snapshot = waiting(name, kind, labels, **spread("web"))
        (rule,) = rules_of(snapshot)
        (found,) = snapshot.pending
        return patch_without(found, spread("web"), rule, softened=True)

    found = patch("web-5f", "ReplicaSet", **{"pod-template-hash": "5f"})
    assert found is not None
    hashed = yaml.safe_load(found.manifest)
    assert (hashed["apiVersion"], hashed["kind"]) == ("apps/v1", "Deployment")
    assert hashed["metadata"] == {"namespace": "shop", "name": "web"}
    assert found.command == "kubectl patch deployment web -n shop --patch-file FILE"
    # The template of a Job cannot be changed.
    assert patch("web", "Job") is patch("web", "Rollout") is None


def test_rules_are_tried_within_bounds_and_never_cost_less_than_nothing() -> None:
    nodes = pool_nodes(2)
    pools = [node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand")), NODE_CLASS]
    many = [
        entry for n in range(45)
        for entry in workload("shop", f"w{n:02}", 1, nodes, "50m", "64Mi", **spread(f"w{n:02}"))
    ]  # fmt: skip
    report = reported(*pools, *with_daemons(nodes), *many)
    assert len(report.rules.rules) == 40
    tried = {one.rule.workload for one in report.rules.rules}
    assert len({workload for workload, _ in report.rules.untried} - tried) == 5
    assert min(one.cost.cost_micros_per_hour for one in report.rules.rules) == 0


def test_what_a_pool_requires_of_nodes_anyway_costs_its_pods_nothing() -> None:
    nodes = pool_nodes(1)
    pool = node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand"))
    pods = [
        entry for n in range(45)
        for entry in workload("shop", f"w{n}", 1, nodes, "50m", "64Mi", nodeSelector={
            FAMILY: "m5", "kubernetes.io/arch": "amd64"})
    ]  # fmt: skip
    rules = reported(pool, NODE_CLASS, *nodes, *pods).rules
    assert [one.cost.cost_micros_per_hour for one in rules.rules] == [0] * 45
    assert rules.untried == ()


def test_a_rule_without_which_no_cheaper_plan_is_found_costs_nothing() -> None:
    nodes = pool_nodes(2)
    pool = [node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand")), NODE_CLASS]
    pods = workload("shop", "web", 2, nodes, "500m", "1Gi", **spread("web"))
    documents = [Document(where="d", raw=raw) for raw in (*pool, *nodes, *pods)]
    snapshot = read_running_cluster(documents, CATALOG).snapshot
    pools = pools_of(snapshot.nodes)
    ((name, owner),) = owners_of(snapshot, pools).items()
    plan = Repacking(snapshot, pools).of_pool(name, owner, REPACK_SETTINGS)
    (found,) = rules_cost([plan], lambda _: Plan(cost_micros_per_hour=10**9)).rules
    assert found.cost.cost_micros_per_hour == 0
    assert found.cost.without.nodes == found.nodes == len(plan.plan.nodes)


def test_pods_that_go_to_nodes_that_stay_have_no_rule_to_price() -> None:
    labels = {"eks.amazonaws.com/nodegroup": "g"}
    nodes = [node(f"n{n}", "m5.2xlarge", "a", labels) for n in range(2)]
    held = workload("shop", "held", 1, nodes, "1", "1Gi", nodeSelector={HOST: "n0"})
    moved = workload("shop", "web", 1, nodes[1:], "1", "1Gi", **spread("web"))
    assert reported(*nodes, *held, *moved).rules.rules == ()


def test_what_an_autoscaler_does_by_itself_is_no_action() -> None:
    report = of_karpenter()
    assert [pool.name for pool in report.actions.by_themselves] == ["batch", "general"]
    saved = report.running.cost_micros_per_hour
    saved -= report.alternatives[Alternative.CONSOLIDATED].cost_micros_per_hour
    gate = action(report, "with the feature gate SpotToSpotConsolidation")
    # Of batch, which runs on spot, Karpenter only removes nodes unless the gate is on.
    assert gate.pool.name == "batch"
    assert gate.how.startswith("Set settings.featureGates.spotToSpotConsolidation")
    by_themselves = report.actions.by_themselves_micros_per_hour
    assert by_themselves == saved - gate.saving_micros_per_hour > 0


def test_what_blocks_nodes_that_no_autoscaler_consolidates_is_freed_together_with_their_edit() -> (
    None
):
    nodes = pool_nodes(4)
    pool = node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand"))
    pool["spec"]["disruption"] = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}
    pods = workload("shop", "web", 4, nodes, "500m", "1Gi")
    report = reported(pool, NODE_CLASS, *nodes, *pods, budget("shop", "web", 0))
    assert report.actions.by_themselves == ()
    (found,) = (one for one in report.actions.listed if "consolidation" in one.title)
    assert found.title.endswith(", after freeing 4 nodes that pods or annotations keep")
    assert "PodDisruptionBudget web holds pod shop/web-0" in found.how
    disruption = yaml.safe_load(found.manifest)["spec"]["disruption"]
    assert disruption["consolidationPolicy"] == "WhenEmptyOrUnderutilized"


def test_of_a_node_pool_that_was_not_read_consolidation_is_conditional() -> None:
    nodes = pool_nodes(4)
    report = reported(*nodes, *workload("shop", "web", 4, nodes, "500m", "1Gi"))
    assert report.unread == (Pool(PoolKind.NODE_POOL, "web"),)
    assert report.actions.by_themselves == ()
    found = action(report, "let consolidation")
    assert found.title.endswith("nodes, unless it does so already")
    assert found.how.startswith("The report could not read NodePool web, so it does not know")


def test_nodes_of_a_fixed_number_stay_as_they_are() -> None:
    fixed = node_pool("web", needs(FAMILY, "m5"), needs(HOW, "on-demand"))
    fixed["spec"]["replicas"] = 4
    nodes = pool_nodes(4)
    pods = workload("shop", "web", 4, nodes, "500m", "1Gi", **spread("web", HOST))
    report = reported(fixed, NODE_CLASS, *nodes, *pods)
    assert not report.actions.listed
    assert not report.rules.rules
    assert {outcome.nodes for outcome in report.alternatives.values()} == {report.running.nodes}
    found = read_running_cluster(
        [Document(where="d", raw=raw) for raw in (fixed, NODE_CLASS, *nodes)], CATALOG
    )
    assert found.notes == (
        "NodePool web keeps a fixed number of nodes (spec.replicas): they stay as they are",
    )


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        ({"m5.large": 3}, {"m5.large": 1}, "remove 2 of 3 nodes"),
        ({"m5.large": 1}, {}, "remove its only node"),
        ({"m5.large": 3}, {"m5.large": 2, "c5.large": 1}, "replace 1 of 3 nodes by another"),
        ({"m5.large": 3}, {"c5.large": 2}, "replace all 3 nodes by 2 others"),
        ({"m5.large": 3}, {"m5.large": 1, "c5.large": 4}, "replace 2 of 3 nodes by 4 cheaper ones"),
    ],
)
def test_what_consolidation_does_to_nodes_is_said_in_a_few_words(
    now: Mapping[str, int], then: Mapping[str, int], said: str
) -> None:
    def nodes(types: Mapping[str, int]) -> Outcome:
        return Outcome(
            nodes=tuple(filled(name) for name, count in types.items() for _ in range(count))
        )

    assert changed_nodes_text(nodes(now), nodes(then)) == said


def filled(of_type: str, price: int = 1, how: CapacityType = CapacityType.ON_DEMAND) -> FilledNode:
    return FilledNode(
        pool=Pool(PoolKind.NODE_POOL, "web"), instance_type=of_type, zone="us-east-1a",
        capacity_type=how, price_micros_per_hour=price, allocatable=Resources(), pods=(),
        daemons=Resources(),
    )  # fmt: skip


def test_a_pool_never_costs_more_for_being_allowed_more() -> None:
    dear, cheap = (Outcome(nodes=(filled("m5.large", price),)) for price in (3, 2))
    proved = replace(dear, lower_bound_micros_per_hour=3, held=(("shop/web-0", "no room"),))
    assert cheaper_of(cheap, dear) is cheap
    assert cheaper_of(dear, cheap) == cheap
    assert cheaper_of(proved, cheap) == replace(
        proved, nodes=cheap.nodes, lower_bound_micros_per_hour=2
    )
    assert joined([proved, cheap]).lower_bound_micros_per_hour is None
    assert joined([proved, proved]).lower_bound_micros_per_hour == 6


def test_what_blocks_nodes_that_are_full_is_no_action() -> None:
    labels = {"eks.amazonaws.com/nodegroup": "g"}
    nodes = [node(f"n{n}", "m5.large", "a", labels) for n in range(3)]
    full = workload("shop", "web", 1, nodes, "1900m", "6Gi")
    wide = workload("shop", "api", 2, nodes[1:], "100m", "1Gi")
    report = reported(*nodes, *full, *wide, budget("shop", "web", 0))
    assert report.alternatives[Alternative.CONSOLIDATED].blocked
    assert not any("after freeing" in found.title for found in report.actions.listed)


def test_a_workload_that_is_not_known_as_written_is_edited_where_it_is_defined() -> None:
    documents = [Document(where="dump", raw=raw) for raw in mixed()]
    found = read_running_cluster(documents, CATALOG)
    told = action(cost_report(found.snapshot, found.budgets), "shop/web")
    assert (told.how, told.manifest) == ("Change it where the workload is defined.", "")


def test_a_provisioner_is_edited_in_its_own_requirements() -> None:
    raw = {"kind": "Provisioner", "spec": {"requirements": [needs(SIZE, "large")], "weight": 2}}
    size = Requirements.of([Requirement.of(SIZE, "large")])
    assert with_requirements(raw, size, Requirements())["spec"] == {"requirements": [], "weight": 2}
