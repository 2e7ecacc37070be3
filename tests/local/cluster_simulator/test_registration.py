"""How a kubelet becomes a Node, and what becomes of pods that are bound before."""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from infra.local.cluster_simulator.client import Server
from infra.local.cluster_simulator.instances import AssumedInstances, Instance, Sizes
from infra.local.cluster_simulator.kubelet.user_data import (
    KubeletFlags,
    UnusableUserDataError,
    read_user_data,
)
from infra.local.cluster_simulator.simulation import Setup, SimulationThread
from infra.local.cluster_simulator.world import Timing
from infra.local.kube.server import EmbeddedKube
from shared.instance_types.ami_families import BootstrapOptions, family_of
from shared.model.kubernetes.taints import Effect, Taint
from tests.local.cluster_simulator.bench import (
    NODES,
    PODS,
    SIZES,
    Bench,
    is_true,
    node,
    pod,
    taint_keys,
)
from tests.local.cluster_simulator.test_nodes import bind
from tests.waiting import until

CLOUD_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
NOT_READY = "node.kubernetes.io/not-ready"
PROVIDER_ID = "aws:///us-east-1a/i-n0"
DEDICATED = Taint(key="dedicated", value="red", effect=Effect.NO_SCHEDULE)
EVICTS = Taint(key="cilium", effect=Effect.NO_EXECUTE)
AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()


def written(
    family: str = "AL2023", *, endpoint: str = "https://api", taints: Sequence[Taint] = (DEDICATED,)
) -> str:
    joining = BootstrapOptions(
        cluster="test",
        endpoint=endpoint,
        certificate_authority=AUTHORITY,
        service_cidr="172.20.0.0/16",
        labels={"karpenter.sh/provisioner-name": "default", "team": "red"},
        taints=tuple(taints),
    )
    return base64.b64encode(family_of(family).user_data(joining).encode()).decode()


@pytest.mark.parametrize("family", ["AL2023", "Bottlerocket", "AL2", "Ubuntu"])
def test_flags_are_read_from_the_user_data_of_each_family(family: str) -> None:
    assert read_user_data(written(family, taints=(DEDICATED, EVICTS))) == KubeletFlags(
        labels={"karpenter.sh/provisioner-name": "default", "team": "red"},
        taints=(
            {"key": "dedicated", "value": "red", "effect": "NoSchedule"},
            {"key": "cilium", "value": "", "effect": "NoExecute"},
        ),
        endpoint="https://api",
        authority=AUTHORITY,
    )


def test_user_data_of_a_custom_image_says_nothing_of_the_kubelet() -> None:
    for text in ("", "anything", "#!/bin/sh\njoin-me"):
        assert read_user_data(base64.b64encode(text.encode()).decode()) == KubeletFlags()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n", "spec.cluster.name"),
        ("[settings.kubernetes]\ncluster-name = 'x'\n", "settings.kubernetes.api-server"),
    ],
)
def test_user_data_without_its_cluster_starts_no_kubelet(text: str, missing: str) -> None:
    with pytest.raises(UnusableUserDataError, match=missing):
        read_user_data(base64.b64encode(text.encode()).decode())


def test_the_kubelet_joins_a_node_that_exists_and_keeps_its_labels_and_taints(bench: Bench) -> None:
    bench.user_data[PROVIDER_ID] = written(endpoint=bench.url)
    bench.add_node("n0", labels={"kubernetes.io/os": "plan9"})
    until(lambda: bench.is_ready("n0"), "it registers")
    found = until(lambda: (n := bench.get(f"{NODES}/n0")) and not taint_keys(n) and n, "taints go")
    labels = found["metadata"]["labels"]
    assert labels["kubernetes.io/os"] == "linux"
    assert "team" not in labels
    assert found["metadata"]["annotations"] == {
        "volumes.kubernetes.io/controller-managed-attach-detach": "true"
    }


def test_a_kubelet_that_names_the_taint_of_the_cloud_provider_never_registers(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    twice = Taint(key=CLOUD_TAINT, value="true", effect=Effect.NO_SCHEDULE)
    bench.user_data[PROVIDER_ID] = written(endpoint=bench.url, taints=(twice,))
    bench.add_node("n0")
    bench.add_node("n1")
    bench.create(PODS, pod("early"))
    bind(bench, "early", "n0")
    until(lambda: bench.is_ready("n1"), "the other one registers")
    until(lambda: caplog.text.count("taints must be unique by key and effect pair") > 1, "retries")
    assert not bench.is_ready("n0")
    until(lambda: is_true(bench.get(f"{PODS}/early"), "Ready"), "it admits pods all the same")


def test_pods_bound_to_a_node_without_status_are_refused(bench: Bench) -> None:
    bench.machines[PROVIDER_ID] = "pending"
    bare = node("n0")
    del bare["status"]
    bench.create(NODES, bare)
    bench.create(PODS, pod("early"))
    bind(bench, "early", "n0")
    bench.machines[PROVIDER_ID] = "running"
    until(lambda: bench.is_ready("n0"), "it registers")
    status = until(
        lambda: (s := bench.get(f"{PODS}/early")["status"])["phase"] == "Failed" and s, "refused"
    )
    assert status["reason"] == "OutOfpods"
    assert status["message"].endswith("pods, requested: 1, used: 0, capacity: 0")
    bench.create(PODS, pod("late"))
    bind(bench, "late", "n0")
    until(lambda: is_true(bench.get(f"{PODS}/late"), "Ready"), "there is room now")


@pytest.mark.parametrize(
    "flags",
    [
        written(endpoint="https://elsewhere"),
        base64.b64encode(
            b"#!/bin/bash\n/etc/eks/bootstrap.sh x --kubelet-extra-args "
            b"'--node-labels=kubernetes.io/role=x'"
        ).decode(),
        base64.b64encode(b"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n").decode(),
    ],
    ids=["another endpoint", "forbidden label", "no cluster"],
)
def test_a_kubelet_with_wrong_user_data_never_starts(bench: Bench, flags: str) -> None:
    bench.user_data[PROVIDER_ID] = flags
    bench.add_node("n0")
    bench.add_node("n1")
    until(lambda: bench.is_ready("n1"), "the other one registers")
    assert not bench.is_ready("n0")


class _Running(AssumedInstances):
    """One machine that runs and of which no Node exists."""

    async def running(self) -> Sequence[Instance]:
        return (
            Instance(
                provider_id=PROVIDER_ID,
                instance_type="m5.xlarge",
                zone="us-east-1a",
                dns_name="n0",
                architecture="arm64",
            ),
        )


@pytest.fixture
def alone(kube: EmbeddedKube) -> Iterator[Bench]:
    """A kubelet without controllers beside it."""
    bench = Bench(kube.url)
    setup = Setup(
        parts=frozenset({"kubelet"}),
        timing=Timing(speed=100),
        instances=_Running(user_data=lambda _: written(endpoint=kube.url)),
        sizes=Sizes(SIZES),
    )
    with SimulationThread(Server(url=kube.url), setup):
        yield bench


def test_a_kubelet_without_a_node_makes_it_with_labels_and_taints_of_its_flags(
    alone: Bench,
) -> None:
    until(lambda: not alone.is_gone(f"{NODES}/n0"), "the Node is made")
    found = alone.get(f"{NODES}/n0")
    assert found["spec"]["providerID"] == PROVIDER_ID
    assert found["metadata"]["labels"] == {
        "kubernetes.io/hostname": "n0",
        "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/os": "linux",
        "karpenter.sh/provisioner-name": "default",
        "team": "red",
    }
    assert taint_keys(found) == {"dedicated", CLOUD_TAINT, NOT_READY}
    assert found["status"]["allocatable"] == SIZES["m5.xlarge"]["capacity"]
    until(lambda: alone.is_ready("n0"), "it reports")


def test_a_kubelet_does_not_make_a_node_again_that_was_deleted(alone: Bench) -> None:
    until(lambda: not alone.is_gone(f"{NODES}/n0") and alone.is_ready("n0"), "it registers")
    alone.call("DELETE", f"{NODES}/n0")
    assert alone.is_gone(f"{NODES}/n0")
    alone.add_node("n0")
    until(lambda: alone.is_ready("n0"), "it reports to the Node that was created again")


def test_beside_other_kubelets_a_machine_is_not_ours_when_its_node_is_gone(
    kube: EmbeddedKube,
) -> None:
    bench = Bench(kube.url)
    mark = ("dovetail.dev/simulated", "true")
    setup = Setup(
        parts=frozenset({"kubelet"}),
        timing=Timing(speed=100),
        instances=_Running(user_data=lambda _: written(endpoint=kube.url)),
        sizes=Sizes(SIZES),
        marks=(mark,),
        discovers=False,
    )
    with SimulationThread(Server(url=kube.url), setup):
        bench.add_node("n1", labels=dict([mark]))
        until(lambda: bench.is_ready("n1"), "a simulated node registers")
        assert bench.is_gone(f"{NODES}/n0")
        bench.add_node("n0")
        bench.call("DELETE", f"{NODES}/n0")
        bench.add_node("n2", labels=dict([mark]))
        until(lambda: bench.is_ready("n2"), "a simulated node registers")
        assert bench.is_gone(f"{NODES}/n0")


def test_a_server_is_reached_by_its_address_and_authority_alone(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(base64.b64decode(AUTHORITY))
    server = Server(url="https://api", ca_file=str(file))
    assert server.answers("https://api/", AUTHORITY)
    assert server.answers("", "")
    assert not server.answers("https://other", AUTHORITY)
    assert not server.answers("https://api", base64.b64encode(b"another").decode())
