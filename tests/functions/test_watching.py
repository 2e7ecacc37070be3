"""What `dovetail watch` reads a cluster through."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from functions.cli.kubeconfig import kubeconfig_of
from functions.cli.watch.cluster_watch import ClusterWatch, ReadOnlyApi
from infra.local.kube.server import EmbeddedKube
from shared.kube.kubeconfig import connect_kubeconfig
from shared.model.errors import PermanentError
from tests import builders as make
from tests.unit.cli import dumps
from tests.unit.cli.running import run

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "pause"}]},
}
CLAIMED = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Any:
    with EmbeddedKube() as server:
        yield str(server.write_kubeconfig(tmp_path / "kubeconfig"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_connection_refuses_to_write(kubeconfig: str, method: str) -> None:
    api = connect_kubeconfig(kubeconfig, kind=ReadOnlyApi)
    with pytest.raises(PermanentError, match="this connection only reads"):
        api.send(method, "/api/v1/namespaces/default/pods", body=POD)
    assert api.get("/api/v1/pods")["items"] == []


def test_pods_are_seen_with_what_kube_scheduler_says(kubeconfig: str) -> None:
    path = "/api/v1/namespaces/default/pods"
    writer = connect_kubeconfig(kubeconfig)
    writer.send("POST", path, body=POD)
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    writer.send(
        "PATCH",
        f"{path}/a/status",
        body={"status": {"conditions": [said]}},
        content_type="application/merge-patch+json",
    )
    assert [
        (seen.pod.name, seen.scheduler_message) for seen in listed(ClusterWatch(kubeconfig).pods)
    ] == [("a", "full")]
    assert listed(ClusterWatch(kubeconfig).nodes) == []


def listed(watch: Callable[..., Any]) -> list[Any]:
    """Return what a watch reports of its first list."""
    found: list[Any] = []
    made = watch(lambda _, new: found.append(new))
    made._list()
    return found


def test_a_cluster_without_provisioners_is_watched_too(kubeconfig: str) -> None:
    told: list[None] = []
    watches = ClusterWatch(kubeconfig).owners(lambda: told.append(None))
    assert len(watches) == 2
    assert ClusterWatch(kubeconfig).daemonsets() == ()
    assert ClusterWatch(kubeconfig).disruption_budgets() == ()
    assert ClusterWatch(kubeconfig).namespaces_for([make.pod()]) == {}


def test_the_kubeconfig_file_is_found_as_kubectl_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kubeconfig_of("named") == "named"
    monkeypatch.setenv("KUBECONFIG", "/from/the/environment")
    assert kubeconfig_of(None) == "/from/the/environment"
    monkeypatch.delenv("KUBECONFIG")
    assert kubeconfig_of(None).endswith("/.kube/config")


def test_a_shadow_record_reads_a_cluster_with_its_volumes_and_writes_nothing_in_it(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = connect_kubeconfig(kubeconfig)
    found = dumps.node("a", "m5.large", "a", {"eks.amazonaws.com/nodegroup": "g"})
    writer.send("POST", "/api/v1/nodes", body=found)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": "of-data"},
    }
    writer.send("POST", "/api/v1/namespaces/default/persistentvolumeclaims", body=volume)
    claiming = {**POD, "spec": {**POD["spec"], "nodeName": "a", "volumes": [CLAIMED]}}
    writer.send("POST", "/api/v1/namespaces/default/pods", body=claiming)
    before = writer.get("/api/v1/pods")["metadata"]["resourceVersion"]
    state, output = tmp_path / "a.db", tmp_path / "a.html"
    words = ("--kubeconfig", kubeconfig, "--state", str(state), "--output", str(output))
    assert run("shadow", "--for", "0m", *words) == 0
    assert "managed node group g" in capsys.readouterr().out
    assert "What Dovetail would have cost" in output.read_text(encoding="utf-8")
    assert writer.get("/api/v1/pods")["metadata"]["resourceVersion"] == before
