"""Gathering a snapshot, writing decisions down, and turning records into wakes."""

import gzip
import json
from collections.abc import Callable

import pytest

from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.ec2.launches import Lease
from shared.model.kubernetes.nodes import Node
from shared.model.messages.message import MessageKind, encode, make_message
from shared.model.plan import Plan
from shared.model.provisioner import InvalidProvisioner, NodeTemplate
from shared.model.values import replace
from shared.planning.decide import decide
from shared.ports import MachineImage, Subnet
from shared.provisioning.cluster_wakes import ClusterWake, wakes
from shared.provisioning.decisions.record import record
from shared.snapshot.gather import _BEYOND, gather
from tests import builders as make
from tests.builders import NOW, node, pod, provisioner, snapshot
from tests.unit.worlds import MINUTE, NAME, SECOND, World, instead


def test_a_snapshot_holds_everything_a_decision_sees() -> None:
    bad = InvalidProvisioner(name="bad", uid="u", resource_version="1", reasons=("r",))
    daemons = make.daemonset()
    world = World(provisioner(), bad, node(), pod(), pod("b", node_name="n1"), daemons)
    out = make.offering()
    world.ledger.mark_unavailable([out], world.clock.now())
    gathered = gather(world.ports, "plan-1")
    seen = gathered.snapshot
    assert [other_pod.name for other_pod in seen.pending] == ["a"]
    assert [other_pod.name for other_pod in seen.bound] == ["b"]
    assert [other_node.name for other_node in seen.nodes] == ["n1"]
    assert [other_provisioner.name for other_provisioner in seen.provisioners] == ["default"]
    assert [site.zones for site in seen.sites] == [make.ZONES]
    assert seen.daemonsets == (daemons,)
    assert seen.unavailable == {out}
    assert seen.taken_at == world.clock.now()
    assert gathered.invalid == (bad,)
    assert gather(world.ports, "plan-1").snapshot.seed == seen.seed
    assert gather(world.ports, "plan-2").snapshot.seed != seen.seed


@pytest.mark.parametrize("waiting", [1, 21])
def test_pods_that_are_bound_while_the_cluster_is_read_do_not_wait(waiting: int) -> None:
    names = [f"p{number}" for number in range(waiting)]
    nodes = (make.node_of(f"n-{name}", "m5.large") for name in names)
    world = World(provisioner(), *nodes, *(pod(name, cpu=1500) for name in names), pod("z"))
    read = world.cluster.provisioners

    def slowly() -> object:
        instead(world.cluster, "provisioners", read)
        bound = [found for found in world.cluster.pending_pods() if found.name in names]
        world.cluster.bind_all([(found, f"n-{found.name}") for found in bound])
        return read()

    instead(world.cluster, "provisioners", slowly)
    seen = gather(world.ports, "plan-1").snapshot
    assert [found.name for found in seen.pending] == ["z"]
    assert [found.node_name for found in seen.bound] == sorted(f"n-{name}" for name in names)


def test_the_lease_is_renewed_while_a_long_list_is_read() -> None:
    world = World(provisioner(), node(), pod())
    others: list[Lease | None] = []
    read = world.cluster.nodes

    def slowly(each_page: Callable[[], object]) -> tuple[Node, ...]:
        instead(world.cluster, "nodes", read)
        for _ in range(10):
            world.advance(20 * SECOND)
            each_page()
            others.append(world.ledger.acquire(NAME, "other", world.clock.now()))
        return read()

    instead(world.cluster, "nodes", slowly)
    assert world.provision(span=60 * MINUTE).leading
    assert others == [None] * 10


def test_a_site_without_subnet_or_security_group_says_what_was_looked_for() -> None:
    template = NodeTemplate(
        subnet_selector=selector_of({"a": "1"}), security_group_selector=selector_of({"b": "2"})
    )
    world = World(provisioner(template=template), pod())
    world.cloud.subnets = ()
    (site,) = gather(world.ports, "p").snapshot.sites
    assert site.zones == ()
    assert "no subnet is found by a=1" in site.reason
    world.cloud.subnets = (Subnet(subnet_id="s", zone="z", free_addresses=1),)
    world.cloud.security_groups = ()
    (site,) = gather(world.ports, "p").snapshot.sites
    assert (site.zones, site.reason) == (
        (),
        "no security group is found by b=2",
    )
    own = NodeTemplate(subnet_selector=selector_of({"a": "1"}), launch_template="mine")
    world.cluster.add(provisioner(template=own))
    (site,) = gather(world.ports, "p").snapshot.sites
    assert (site.zones, site.reason) == (("z",), "")


def test_role_that_the_attachment_does_not_name_launches_nothing_and_says_what_to_deploy() -> None:
    template = replace(provisioner().template, role="Mine")
    world = World(provisioner(template=template), pod())
    ports = replace(world.ports, node_profiles={"DovetailNode-test": "nodes"})
    (site,) = gather(ports, "p").snapshot.sites
    assert site.zones == ()
    assert site.reason == (
        "role: Mine: the cluster is attached with other roles (DovetailNode-test); write one of "
        "them, or attach it with this one, too: npx cdk deploy --all -c clusters=test -c "
        "max_price_per_hour=test:<dollars> -c node_roles=test:Mine"
    )
    ports = replace(world.ports, node_profiles={"Mine": "profile-of-mine"})
    (site,) = gather(ports, "p").snapshot.sites
    assert site.zones == make.ZONES
    assert ports.profile_of(template) == "profile-of-mine"


def test_selectors_left_empty_mean_what_carries_the_clusters_tag() -> None:
    world = World(provisioner(template=NodeTemplate()), pod())
    (site,) = gather(world.ports, "p").snapshot.sites
    assert site.zones == make.ZONES
    (template,) = world.cloud.called("site")
    assert isinstance(template, NodeTemplate)
    assert template.subnet_selector == selector_of({f"kubernetes.io/cluster/{NAME}": "*"})


def test_a_site_knows_the_types_that_no_image_boots() -> None:
    chosen = replace(provisioner().template, ami_selector=selector_of({"team": "red"}))
    world = World(provisioner(template=chosen), provisioner("same", template=chosen), pod())
    world.cloud.images = (
        MachineImage(
            image_id="ami-1",
            name="nodes",
            architecture="amd64",
            created_at=NOW,
            tags={"team": "red"},
        ),
    )
    found = gather(world.ports, "p").snapshot.sites
    assert [site.without_image for site in found] == [{"c6g.large"}, {"c6g.large"}]
    assert len(world.cloud.called("find_images")) == 1
    own = replace(chosen, launch_template="mine")
    world.cluster.add(provisioner(template=own), provisioner("same", template=own))
    found = gather(world.ports, "p").snapshot.sites
    assert [site.without_image for site in found] == [frozenset()] * 2


def test_a_provisioner_without_any_image_leaves_its_pods_to_others() -> None:
    chosen = replace(provisioner().template, ami_selector=selector_of({"team": "red"}))
    world = World(provisioner("first", template=chosen, weight=9), provisioner(), pod())
    (site, _) = sorted(gather(world.ports, "p").snapshot.sites, key=lambda site: site.zones)
    assert (site.provisioner, site.zones) == ("first", ())
    assert site.reason.startswith("no image is found: amiSelector finds none")
    assert world.provision().nodes_launched == 1


def test_images_that_cannot_be_read_now_are_looked_for_by_the_launch() -> None:
    world = World(provisioner(), pod())
    world.cloud.throttle_next("image_ids")
    (site,) = gather(world.ports, "p").snapshot.sites
    assert (site.zones, site.without_image) == (make.ZONES, frozenset())


def test_a_decision_is_written_so_that_it_can_be_read() -> None:
    world = World()
    seen = snapshot(pod(spreads=(make.spread(),), node_selector=make.needs(keys.ARCH, "Gt", "3")))
    key = record(world.decisions, "plan-1", seen, decide(seen))
    assert key == "decisions/test/2026-01-01/plan-1.json.gz"
    document = json.loads(gzip.decompress(world.decisions.documents[key]))
    assert document["plan_id"] == "plan-1"
    assert document["snapshot"]["pending"][0]["name"] == "a"
    assert document["snapshot"]["taken_at"] == "2026-01-01T00:00:00Z"
    assert set(document) >= {"version", "snapshot", "plan"}


def test_the_same_decision_is_the_same_bytes() -> None:
    first, second = World(), World()
    for world in (first, second):
        record(world.decisions, "plan-1", snapshot(*make.pods(3)), Plan())
    assert first.decisions.documents == second.decisions.documents


def text(kind: MessageKind = MessageKind.POD_PENDING, cluster: str = "one") -> str:
    return json.dumps(encode(make_message(kind, cluster, NOW)))


def test_many_records_of_a_cluster_are_one_wake() -> None:
    found, invalid = wakes(
        [
            ("1", text(cluster="two")),
            ("2", text()),
            ("3", text(MessageKind.PROVISIONER_CHANGED)),
            ("4", "{"),
            ("5", text(cluster="two")),
        ]
    )
    assert found == (
        ClusterWake(cluster="two", record_ids=("1", "5")),
        ClusterWake(cluster="one", record_ids=("2", "3"), provisioners_changed=True),
    )
    assert [(invalid_record.record_id, invalid_record.text) for invalid_record in invalid] == [
        ("4", "{")
    ]
    assert invalid[0].reason.startswith("body: not JSON")


def test_no_records_are_no_wake() -> None:
    assert wakes([]) == ((), ())


def test_a_nomination_to_a_node_that_is_gone_is_void() -> None:
    kept, void = pod("kept", nominated_node="n1"), pod("void", nominated_node="gone")
    world = World(provisioner(), node(), kept, void)
    pending = gather(world.ports, "plan-1").snapshot.pending
    assert {entry.name: entry.nominated_node for entry in pending} == {"kept": "n1", "void": ""}


def test_what_does_not_count_is_left_out_told_on_the_object_and_noted() -> None:
    huge = [
        replace(make.daemonset(f"huge-{n}", cpu=1_000_000), namespace="tenant") for n in range(5)
    ]
    broken = replace(make.daemonset("broken"), problem="it selects nothing")
    rule = make.affinity()
    beyond = {"scheduling": make.scheduling(anti_affinity=(rule,), beyond=("999 rules",))}
    plain = {"scheduling": make.scheduling(beyond=("999 ports",))}
    crowd = (pod("crowd", node_name="n1", **beyond), pod("plain", node_name="n1", **plain))
    world = World(provisioner(), node(), pod(), *crowd, *huge, broken, make.daemonset())
    gathered = gather(world.ports, "plan-1")
    assert [one.name for one in gathered.snapshot.daemonsets] == ["logs"]
    assert [subject.name for subject, _ in gathered.left_out] == [
        *("broken", "huge-0", "huge-1", "huge-2", "huge-3", "huge-4", "crowd"),
    ]
    assert gathered.notes[0] == "DaemonSet kube-system/broken is left out: it selects nothing"
    assert gathered.notes[1].startswith("DaemonSet tenant/huge-0 is left out: each of its pods")
    assert gathered.notes[4:] == (
        "DaemonSet: 2 more in namespace tenant, for such reasons",
        f"Pod default/crowd: 999 rules; {_BEYOND}",
    )
    listed = replace(world.ports, daemonset_namespaces=frozenset({"tenant"}))
    assert len(gather(listed, "plan-1").snapshot.daemonsets) == 6

    report = world.provision()
    assert report.notes == gathered.notes
    told = {(event.namespace, event.name, event.reason) for event in world.cluster.kube_events}
    assert ("tenant", "huge-4", "DaemonSetLeftOut") in told
    assert ("default", "crowd", "RulesWidened") in told


def test_a_namespace_whose_rules_are_widened_is_told_and_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.planning.work._EXISTING", 10**9)
    owner = pod("b", node_name="n1", anti_affinity=(make.affinity(),))
    world = World(provisioner(), node(), pod(), owner)
    report = world.provision()
    (note,) = report.notes
    assert note.startswith("namespace default: its pods on nodes have more required anti-affinity")
    told = {(event.kind, event.name, event.reason) for event in world.cluster.kube_events}
    assert ("Namespace", "default", "RulesWidened") in told
