"""What `dovetail shadow` knows of a cluster at a time."""

from datetime import timedelta

import pytest

from functions.cli.shadow.observer import ClusterObserver
from functions.cli.watch.cluster_watch import WatchedPod
from shared.model import labels as keys
from shared.model.errors import NotInstalledError, UnauthorizedError
from shared.model.values import replace
from tests import builders as make
from tests.fakes.clock import FakeClock
from tests.unit.cli.shadow.observed import ObservedCluster

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cluster() -> ObservedCluster:
    return ObservedCluster()


@pytest.fixture
def observer(cluster: ObservedCluster, clock: FakeClock) -> ClusterObserver:
    made = ClusterObserver(cluster, clock.now)
    made.start()
    return made


def test_nothing_is_known_before_the_first_lists_are_complete(
    observer: ClusterObserver, cluster: ObservedCluster
) -> None:
    assert observer.observe() is None
    cluster.has([make.node()], [make.pod()])
    found = observer.observe()
    assert found is not None
    assert (found.nodes, found.pods) == ((make.node(),), (make.pod(),))
    assert found.provisioners == cluster.found
    assert found.budgets == (make.budget(),)
    assert found.namespaces == {"default": {}}
    observer.stop()
    assert not any(watch.running for watch in cluster.watches)


def test_a_cluster_whose_watches_are_not_served_is_not_known(
    observer: ClusterObserver, cluster: ObservedCluster, clock: FakeClock
) -> None:
    cluster.has([make.node()], [])
    clock.advance(11 * MINUTE)
    assert observer.observe() is None
    for watch in cluster.watches:
        watch.served()
    assert observer.observe() is not None


def test_what_goes_and_what_ends_is_no_longer_there(
    observer: ClusterObserver, cluster: ObservedCluster
) -> None:
    first, ending = make.pod("first"), make.pod("ending")
    cluster.has([make.node()], [first, ending])
    of_nodes, of_pods = cluster.watches
    of_nodes.changed(make.node(), None)
    of_pods.changed(WatchedPod(first, ""), None)
    done = replace(ending, phase="Succeeded")
    of_pods.changed(WatchedPod(ending, ""), WatchedPod(done, ""))
    found = observer.observe()
    assert found is not None
    assert (found.nodes, found.pods) == ((), ())


def test_what_cannot_be_listed_stays_as_it_was_and_is_noted(
    observer: ClusterObserver, cluster: ObservedCluster, clock: FakeClock
) -> None:
    cluster.has([make.node()], [make.pod()])
    observer.observe()
    cluster.failure = UnauthorizedError("forbidden")
    # Lists are read each minute.
    clock.advance(MINUTE / 2)
    observer.observe()
    assert observer.notes == {}
    clock.advance(MINUTE / 2)
    found = observer.observe()
    assert found is not None
    assert found.provisioners == cluster.found
    assert observer.notes["NodePools"] == "NodePools: cannot be read, taken as they were: forbidden"
    cluster.failure = None
    clock.advance(MINUTE)
    observer.observe()
    assert observer.notes == {}


def test_a_cluster_without_karpenter_has_no_node_pools(
    observer: ClusterObserver, cluster: ObservedCluster
) -> None:
    cluster.failure = NotInstalledError("no CRD")
    cluster.has([make.node()], [])
    found = observer.observe()
    assert found is not None
    assert found.provisioners == ()
    assert "NodePools" not in observer.notes


def test_volumes_are_read_when_a_pod_comes_and_when_it_is_bound(
    observer: ClusterObserver, cluster: ObservedCluster
) -> None:
    cluster.zones = make.needs(keys.ZONE, "In", make.ZONES[1])
    claiming = make.pod("a", claims=("data",))
    cluster.has([make.node()], [claiming, make.pod("b")])
    for _ in range(2):
        found = observer.observe()
        assert found is not None
        terms = {pod.name: pod.scheduling.volume_terms for pod in found.pods}
        assert terms == {"a": ((cluster.zones,),), "b": ()}
    assert cluster.asked == ["a"]
    bound = replace(claiming, node_name="n1")
    cluster.watches[1].changed(WatchedPod(claiming, ""), WatchedPod(bound, ""))
    observer.observe()
    assert cluster.asked == ["a", "a"]


def test_volumes_that_cannot_be_read_may_be_anywhere(
    observer: ClusterObserver, cluster: ObservedCluster
) -> None:
    cluster.failure = UnauthorizedError("forbidden")
    cluster.has([make.node()], [make.pod("a", claims=("data",))])
    found = observer.observe()
    assert found is not None
    assert found.pods[0].scheduling.volume_terms == ()
    assert found.pods[0].scheduling.refusals == ()
    # They are read again, and may be there without being known.
    cluster.failure, cluster.refusals = None, ("volume: no such claim",)
    found = observer.observe()
    assert found is not None
    assert found.pods[0].scheduling.refusals == ()
    assert observer.notes["Volumes"] == (
        "Volumes: those of pods such as default/a are not known, and taken to be in any zone"
    )
