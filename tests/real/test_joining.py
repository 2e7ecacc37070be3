"""The kubelet's own code reads what each family writes, and joins through the front."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.local.demo.children import Children
from infra.local.demo.node_sizes import node_sizes
from infra.local.kube.certificates import ca_file, server_context
from shared.instance_types.ami_families import FAMILIES, BootstrapOptions, family_of
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from tests.real.cluster import SERVICES, Cluster
from tests.real.nodes import kubelet_command, machine_file
from tests.real.user_data import Instance, UnusableError, boot_of

pytestmark = pytest.mark.timeout(300)

WITH_USER_DATA = sorted(set(FAMILIES) - {"Custom"})
# Four times what was measured: 4 s, on a machine with two busy cores.
JOIN_SECONDS = 20.0
DEDICATED = Taint(key="dedicated", value="batch", effect=Effect.NO_SCHEDULE)
NOT_READY = Taint(key="karpenter.sh/not-ready", effect=Effect.NO_SCHEDULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The endpoint that user data names."""

    url: str
    authority: str
    folder: Path
    children: Children


@pytest.fixture(scope="module")
def front(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder = tmp_path_factory.mktemp("f")
    auth = folder / "auth.json"
    tokens = [
        {"token": value, "username": f"system:node:{value}", "groups": ["system:nodes"]}
        for value in (*map(str.lower, WITH_USER_DATA), "wrong-authority", "wrong-endpoint")
    ]
    auth.write_text(json.dumps({"static_tokens": tokens}))
    children = Children(folder)
    try:
        arguments = ["infra.local.api_proxy", "--kubeconfig", str(cluster.kubeconfig())]
        arguments += ["--tls-dir", str(folder / "tls"), "--auth-file", str(auth)]
        ready = children.start("front", arguments)
        authority = encoded(Path(ready["ca_file"]))
        yield Front(url=ready["url"], authority=authority, folder=folder, children=children)
    finally:
        children.stop_all()


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def joining(front: Front) -> BootstrapOptions:
    return BootstrapOptions(
        cluster="demo",
        endpoint=front.url,
        certificate_authority=front.authority,
        service_cidr=SERVICES,
        labels={"team": "blue", "karpenter.sh/capacity-type": "spot"},
        taints=(DEDICATED, NOT_READY),
    )


def start(front: Front, program: Path, family: str, told: BootstrapOptions, name: str) -> None:
    """Start the kubelet of an m5.large."""
    machine = node_sizes()["m5.large"]
    instance = Instance(id=f"i-{name}", zone="us-east-1b", dns_name=name, cores=2, pods=29)
    boot = boot_of(family_of(family).user_data(told).encode(), instance)
    command = kubelet_command(
        boot,
        folder=front.folder,
        name=name,
        user={"token": name},
        machine=machine_file(machine, instance),
    )
    front.children.spawn(name, [str(program), *command])


def node_of(cluster: Cluster, name: str) -> dict[str, Any]:
    found = cluster.client.items("api/v1/nodes", fieldSelector=f"metadata.name={name}")
    return found[0] if found else {}


def until(found: Callable[[], bool], log: Path) -> None:
    ends = time.monotonic() + JOIN_SECONDS
    while not found():
        assert time.monotonic() < ends, log.read_text()[-2000:]
        time.sleep(0.2)


@pytest.mark.parametrize("family", WITH_USER_DATA)
def test_a_machine_joins_with_what_its_user_data_says(
    cluster: Cluster, front: Front, program: Path, family: str
) -> None:
    name = family.lower()
    start(front, program, family, joining(front), name)
    until(lambda: is_ready(node_of(cluster, name)), front.folder / f"{name}.log")
    node = node_of(cluster, name)
    labels = node["metadata"]["labels"]
    assert labels["team"] == "blue"
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert node["spec"]["providerID"] == f"aws:///us-east-1b/i-{name}"
    taints = [taint["key"] for taint in node["spec"]["taints"]]
    assert {"dedicated", "karpenter.sh/not-ready"} < set(taints)
    assert taints.count("node.cloudprovider.kubernetes.io/uninitialized") == 1
    planned = node_sizes()["m5.large"]["allocatable"]
    assert {key: node["status"]["allocatable"][key] for key in ("cpu", "pods")} == {
        key: planned[key] for key in ("cpu", "pods")
    }


def is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def test_a_machine_with_a_wrong_authority_does_not_join(
    cluster: Cluster, front: Front, program: Path
) -> None:
    server_context(front.folder / "other")
    wrong = replace(joining(front), certificate_authority=encoded(ca_file(front.folder / "other")))
    start(front, program, "AL2023", wrong, "wrong-authority")
    log = front.folder / "wrong-authority.log"
    until(lambda: "certificate signed by unknown authority" in log.read_text(), log)
    assert node_of(cluster, "wrong-authority") == {}


def test_a_machine_with_a_wrong_endpoint_does_not_join(
    cluster: Cluster, front: Front, program: Path
) -> None:
    wrong = replace(joining(front), endpoint="https://127.0.0.1:1")
    start(front, program, "AL2023", wrong, "wrong-endpoint")
    log = front.folder / "wrong-endpoint.log"
    until(lambda: "127.0.0.1:1: connect: connection refused" in log.read_text(), log)
    assert node_of(cluster, "wrong-endpoint") == {}


def test_user_data_without_an_endpoint_starts_no_kubelet(front: Front) -> None:
    instance = Instance(id="i-1", zone="us-east-1a", dns_name="n", cores=2, pods=29)
    told = family_of("AL2023").user_data(replace(joining(front), endpoint=""))
    with pytest.raises(UnusableError, match="apiServerEndpoint"):
        boot_of(told.encode(), instance)
