"""What `dovetail report` and `plan` read of a running cluster: all of it, and no write."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from functions.cli.cluster_dump import dump_cluster, unread_notes
from functions.cli.main import main
from infra.local.kube.kubeconfig import write_kubeconfig
from infra.local.kube.server import EmbeddedKube
from shared.model.errors import PermanentError, UnauthorizedError
from tests.contract.kube.scripted import Answer, Request, scripted
from tests.contract.kube.worlds import OverHttp
from tests.unit.cli.dumps import node, pod


def test_each_object_comes_with_its_kind_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    with EmbeddedKube() as kube:
        world = OverHttp(kube.url)
        world.apply(node("n", "m5.large", "a", {}))
        world.apply(pod("default", "web", 0, "n", "1", "1Gi"))
        write_kubeconfig(config, kube.url, {}, {"token": "t"})
        monkeypatch.setenv("KUBECONFIG", str(config))
        unread: dict[str, str] = {}
        found = list(dump_cluster(None, unread))
        assert found == list(dump_cluster(str(config), unread))
        with pytest.raises(PermanentError, match="elsewhere"):
            list(dump_cluster(str(config), unread, "elsewhere"))
    assert unread == {}
    listed = {(raw["apiVersion"], raw["kind"], raw["metadata"]["name"]) for raw in found}
    assert ("v1", "Node", "n") in listed
    assert ("v1", "Pod", "web-0") in listed
    assert ("v1", "Namespace", "default") in listed


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="nowhere"):
        list(dump_cluster(str(tmp_path / "nowhere"), {}))


def forbidding(*kinds: str) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        if request.path.rpartition("/")[2] in kinds:
            return Answer(status=403, body={"message": "is forbidden", "reason": "Forbidden"})
        return Answer(body={"metadata": {"resourceVersion": "1"}, "items": []})

    return answer


def test_a_kind_that_may_not_be_listed_is_noted(tmp_path: Path) -> None:
    config = tmp_path / "config"
    with scripted(forbidding("poddisruptionbudgets", "nodepools")) as server:
        write_kubeconfig(config, server.url, {}, {"token": "t"})
        unread: dict[str, str] = {}
        assert list(dump_cluster(str(config), unread)) == []
    budgets, pools = unread_notes(unread)
    assert budgets.startswith("PodDisruptionBudget: may not be read, so none is known: ")
    assert pools.startswith("NodePool: may not be read, so none is known: ")


@pytest.mark.parametrize("kind", ["nodes", "pods"])
def test_without_nodes_or_pods_nothing_is_reported(tmp_path: Path, kind: str) -> None:
    config = tmp_path / "config"
    with scripted(forbidding(kind)) as server:
        write_kubeconfig(config, server.url, {}, {"token": "t"})
        with pytest.raises(UnauthorizedError, match="is forbidden"):
            list(dump_cluster(str(config), {}))


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_plan_and_why_are_about_a_running_cluster_whose_region_has_prices(
    tmp_path: Path, region: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config, manifests = tmp_path / "config", tmp_path / "more.json"
    waiting, more = (pod("default", name, 0, "", "500m", "1Gi") for name in ("web", "more"))
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting["status"] = {"phase": "Pending", "conditions": [unschedulable]}
    del more["status"]
    manifests.write_text(json.dumps(more))
    with EmbeddedKube() as kube:
        world = OverHttp(kube.url)
        of_region = {"topology.kubernetes.io/region": region}
        world.apply(node("n", "m5.large", "a", of_region))
        world.api.send(
            "PATCH",
            "/api/v1/nodes/n",
            body={"spec": {"taints": None}},  # the API server adds not-ready to each new Node
            content_type="application/merge-patch+json",
        )
        world.apply(waiting)
        write_kubeconfig(config, kube.url, {}, {"token": "t"})
        code = main(["plan", "--kubeconfig", str(config), "-f", str(manifests)])
        told = capsys.readouterr()
        assert main(["why", "--kubeconfig", str(config), "node/n"]) == code
        answer = capsys.readouterr().out
        assert main(["plan", "--kubeconfig", str(config)]) == code
        alone = "".join(capsys.readouterr())
    if region == "us-east-1":
        assert code == 0
        assert "n: default/more-0, default/web-0" in told.out
        assert "n: default/web-0" in alone
        assert "zones: those of the cluster's nodes (us-east-1a)" in alone
        assert answer.startswith("node/n is m5.large on-demand in us-east-1a of nodes without a")
    else:
        assert code == 2
        assert "the prices are those of us-east-1" in told.err
