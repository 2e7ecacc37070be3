"""Other autoscalers are seen by the leases their leaders renew."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from shared.kube.api import KubeApi, Reply
from shared.kube.rivals import KubeRivals
from shared.ports import NoRivals, Rival, RivalKind
from tests.fakes.clock import FakeClock

KARPENTER = "karpenter-leader-election"
PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/(?P<namespace>[a-z-]+)/leases")


NAMESPACES = ("kube-system", "karpenter")


class Api:
    """Answers lists of the leases of one namespace by name."""

    def __init__(self, *leases: Mapping[str, Any]) -> None:
        self.leases = leases
        self.asked: list[str] = []

    def send(self, method: str, path: str, *, query: Any = (), **_: Any) -> Reply:
        match = PATH.fullmatch(path)
        assert method == "GET"
        assert match is not None
        selector = dict(query)["fieldSelector"]
        self.asked.append(path)
        wanted = {
            "namespace": match["namespace"],
            "name": selector.removeprefix("metadata.name="),
        }
        found = [lease for lease in self.leases if lease["metadata"] == wanted]
        return Reply(status=200, body={"items": found})


def lease(
    clock: FakeClock, name: str = KARPENTER, namespace: str = "kube-system", **spec: Any
) -> dict[str, Any]:
    given = {"holderIdentity": "pod-1", "renewTime": written(clock.now()), **spec}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": given}


def written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", ".123456Z")


def rivals(api: Api, clock: FakeClock) -> KubeRivals:
    return KubeRivals(cast("KubeApi", api), clock.now, NAMESPACES)


def test_a_leader_that_renews_its_lease_is_running() -> None:
    clock = FakeClock()
    api = Api(lease(clock), lease(clock, "cluster-autoscaler"), lease(clock, "other"))
    found = rivals(api, clock).running()
    assert found == (
        Rival(
            kind=RivalKind.CLUSTER_AUTOSCALER,
            where="kube-system/cluster-autoscaler",
            holder="pod-1",
        ),
        Rival(kind=RivalKind.KARPENTER, where=f"kube-system/{KARPENTER}", holder="pod-1"),
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"holderIdentity": ""},
        {"renewTime": None},
        {"renewTime": "yesterday"},
        {"renewTime": "9999-12-31T23:59:59-23:00"},
    ],
)
def test_lease_without_a_holder_or_renewal_is_no_rival(spec: dict[str, Any]) -> None:
    clock = FakeClock()
    assert rivals(Api(lease(clock, **spec)), clock).running() == ()


def test_a_leader_that_fell_silent_is_gone_and_answers_are_half_a_minute_old_at_most() -> None:
    clock = FakeClock()
    api = Api(lease(clock))
    seen = rivals(api, clock)
    assert len(seen.running()) == 1
    clock.advance(timedelta(seconds=29))
    assert len(seen.running()) == 1
    assert len(api.asked) == 4
    clock.advance(timedelta(minutes=2))
    assert seen.running() == ()
    assert len(api.asked) == 8
    assert NoRivals().running() == ()


@pytest.mark.parametrize(("namespace", "found"), [("karpenter", 1), ("shop", 0)])
def test_a_lease_counts_in_the_namespaces_of_autoscalers_only(namespace: str, found: int) -> None:
    clock = FakeClock()
    assert len(rivals(Api(lease(clock, namespace=namespace)), clock).running()) == found


@pytest.mark.parametrize("ahead", [timedelta(minutes=2), timedelta(days=365)])
def test_a_lease_that_was_renewed_in_the_future_is_not_believed(ahead: timedelta) -> None:
    clock = FakeClock()
    api = Api(lease(clock, renewTime=written(clock.now() + ahead)))
    assert rivals(api, clock).running() == ()


def test_the_clock_of_a_leader_may_be_some_seconds_fast() -> None:
    clock = FakeClock()
    api = Api(lease(clock, renewTime=written(clock.now() + timedelta(seconds=10))))
    assert len(rivals(api, clock).running()) == 1
