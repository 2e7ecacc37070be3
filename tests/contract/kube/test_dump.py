"""What `dovetail report` reads of a running cluster: all of it, with kinds, and no write."""

from pathlib import Path

import pytest

from infra.local.kube.kubeconfig import write_kubeconfig
from infra.local.kube.server import EmbeddedKube
from shared.model.errors import PermanentError
from shared.runtime.dump import read_cluster
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
        found = list(read_cluster(""))
        assert found == list(read_cluster(str(config)))
    listed = {(raw["apiVersion"], raw["kind"], raw["metadata"]["name"]) for raw in found}
    assert ("v1", "Node", "n") in listed
    assert ("v1", "Pod", "web-0") in listed
    assert ("v1", "Namespace", "default") in listed


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="nowhere"):
        list(read_cluster(str(tmp_path / "nowhere")))
