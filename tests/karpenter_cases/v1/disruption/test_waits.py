"""How long the pods of a NodePool's node must not have changed before it is consolidated."""

from datetime import timedelta
from typing import Any, Final

from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.evaluation import DisruptionInput, Evaluation, evaluate
from shared.disruption.pod_changes import pod_digests, recently_changed
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import pod
from tests.karpenter_cases.v1.disruption.scenes import of_pool, saving, scene
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.disruption.clusters import LATER, PACKING, on
from tests.unit.worlds import MINUTE, SECOND, World

DAEMON: Final = ControllerRef(kind="DaemonSet", name="d", uid="d")
SPAN: Final[dict[str, Any]] = {"consolidateAfter": "10m"}


def waiting(span: str = "10m") -> Any:
    return saving(disruption={"consolidateAfter": span})


def looked_at(seen: ClusterSnapshot) -> Evaluation:
    """Look over a cluster that was never looked at before."""
    return evaluate(
        DisruptionInput(
            snapshot=seen,
            budgets=(),
            settings=DisruptionSettings(budget_percent=100),
            packing=PACKING,
            recently_changed=recently_changed(seen, pod_digests(seen, {})),
        )
    )


def pair(first: timedelta, second: timedelta, **pool: Any) -> ClusterSnapshot:
    """Return two half-empty nodes whose pods were bound so long ago."""
    bound = (
        on("a", cpu=300, started_at=LATER - first),
        on("b", cpu=300, started_at=LATER - second),
    )
    return scene(of_pool("a"), of_pool("b"), bound=bound, pools=(waiting(**pool),))


def test_a_node_may_go_once_its_last_pod_event_is_old_enough() -> None:
    old = looked_at(pair(10 * MINUTE, 10 * MINUTE)).change
    assert old is not None
    assert old.method == DisruptionMethod.DELETE
    there = watched()
    there.advance(9 * MINUTE)
    there.provision(look=True)
    assert not leaving(there)
    there.advance(MINUTE)
    there.provision(look=True)
    assert len(leaving(there)) == 1


def bare(**changes: Any) -> ClusterSnapshot:
    """Return a node without pods, made an hour ago, its kubelet ready for three minutes."""
    node = of_pool("a", ready_changed_at=LATER - 3 * MINUTE, **changes)
    return scene(node, pools=(waiting(),))


def test_without_a_pod_event_the_wait_begins_when_the_node_is_initialized() -> None:
    assert looked_at(bare()).change is None
    later = replace(bare(), taken_at=LATER + 7 * MINUTE)
    assert looked_at(later).change is not None
    # It was looked at before, while a startup taint kept it from being initialized.
    starting = pod_digests(bare(labels={keys.INITIALIZED: ""}), {})
    first = pod_digests(replace(bare(), taken_at=LATER + 60 * MINUTE), starting)
    assert recently_changed(replace(bare(), taken_at=LATER + 69 * MINUTE), first) == {"uid-a"}
    assert recently_changed(replace(bare(), taken_at=LATER + 70 * MINUTE), first) == frozenset()


def test_a_young_event_no_initialization_or_never_keep_it() -> None:
    assert looked_at(pair(MINUTE, MINUTE)).change is None
    starting = bare(labels={keys.INITIALIZED: ""})
    assert looked_at(replace(starting, taken_at=LATER + 60 * MINUTE)).change is None
    assert looked_at(pair(60 * MINUTE, 60 * MINUTE, span="Never")).change is None


# --- a cluster that is looked at again and again


def watched() -> World:
    """Return two half-empty nodes at their first look, pods bound to them just before."""
    there = world(named_pool(disruption={**SPAN, "budgets": []}))
    for name in ("n1", "n2"):
        stand(there, name)
    there.advance(60 * MINUTE)
    now = there.clock.now()
    there.cluster.add(*(pod(name, node_name=name, started_at=now) for name in ("n1", "n2")))
    there.provision(look=True)
    return there


def leaving(there: World) -> list[str]:
    """Return the names of the nodes that a replacement was started for."""
    return [event.name for event in there.events("Disrupted", "Node")]


def written(there: World) -> int:
    """Return how often the cluster's ledger row of pods was written."""
    return there.ledger.note("test", "pods-seen-since").version


def test_several_events_are_written_once_and_those_of_daemonsets_never() -> None:
    there = watched()
    before = written(there)
    for name in ("x", "y"):
        there.advance(4 * SECOND)
        there.cluster.add(pod(name, node_name="n1"))
    there.provision(look=True)
    assert written(there) == before + 1
    there.cluster.add(pod("d", node_name="n1", owner=DAEMON))
    there.advance(4 * SECOND)
    there.provision(look=True)
    assert written(there) == before + 1


# --- where moved pods go


def test_a_node_within_its_wait_takes_no_moved_pods() -> None:
    assert looked_at(pair(60 * MINUTE, MINUTE)).change is None
    room = pair(60 * MINUTE, 60 * MINUTE)
    assert looked_at(room).change is not None


def test_a_wait_that_never_ends_keeps_no_pods_away() -> None:
    never = saving("never", disruption={"consolidateAfter": "Never"})
    other = of_pool("b", owner="never")
    bound = (on("a", cpu=300), on("b", cpu=300, started_at=LATER - SECOND))
    found = looked_at(scene(of_pool("a"), other, bound=bound, pools=(waiting(), never))).change
    assert found is not None
    assert found.remove == ("a",)


def test_a_new_node_takes_what_a_waiting_one_may_not() -> None:
    large = of_pool("a", "m5.2xlarge")
    bound = (on("a", cpu=300), on("b", cpu=300, started_at=LATER - MINUTE))
    found = looked_at(scene(large, of_pool("b"), bound=bound, pools=(waiting(),))).change
    assert found is not None
    assert (found.method, found.remove) == (DisruptionMethod.REPLACE, ("a",))
