"""`dovetail detach` against the embedded API server."""

import pytest

from functions.cli.attach.manifests import NAMESPACE
from tests.functions.attach.cluster import DEFINITIONS, IN_DOVETAIL, There

PROVISIONERS = "/apis/karpenter.sh/v1alpha5/provisioners"
Captured = pytest.CaptureFixture[str]


def test_detaching_removes_what_attaching_made(there: There, capsys: Captured) -> None:
    empty = {path: there.names(path) for path in ("/api/v1/namespaces", DEFINITIONS)}
    there.run("attach", "--yes", "--wait", "0")
    root = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}}
    there.make(f"{IN_DOVETAIL}/configmaps", root)
    capsys.readouterr()

    assert there.run("detach", "--yes") == 0

    told = capsys.readouterr().out.splitlines()
    assert told[1] == "  delete    Deployment dovetail/dovetail-forwarder"
    assert told[-1] == (
        "detached; next, its stack: npx cdk destroy DovetailCluster-prod, with the -c options it "
        "was deployed with"
    )
    assert {path: there.names(path) for path in empty} == empty
    roles = there.names("/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert not [name for name in roles if "dovetail" in name]
    assert there.run("detach", "--yes") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [told[-1]]


def test_detaching_keeps_what_the_user_wrote(there: There, capsys: Captured) -> None:
    there.run("attach", "--yes", "--wait", "0")
    for name in ("a", "b"):
        provisioner = {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": name},
            "spec": {},
        }
        there.make(PROVISIONERS, provisioner)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}}
    there.make(f"{IN_DOVETAIL}/secrets", secret)
    capsys.readouterr()

    assert there.run("detach", "--yes") == 0

    told = capsys.readouterr().out
    assert (
        "  leave     CustomResourceDefinition provisioners.karpenter.sh: defines Provisioner a and "
        "1 more, which would be deleted with it: kubectl delete provisioners --all\n"
    ) in told
    assert (
        "leave     Namespace dovetail: holds Secret dovetail/mine, which is not Dovetail's" in told
    )
    assert there.names(DEFINITIONS) == ["provisioners.karpenter.sh"]
    assert there.names(PROVISIONERS) == ["a", "b"]
    assert there.names(f"{IN_DOVETAIL}/secrets") == ["mine"]


def test_detaching_is_refused_while_nodes_exist_unless_told_to(
    there: There, capsys: Captured
) -> None:
    there.run("attach", "--yes", "--wait", "0")
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "labels": {"karpenter.sh/provisioner-name": "default"},
            "annotations": {"dovetail.dev/slot": "plan/0/0"},
            "finalizers": ["karpenter.sh/termination"],
        },
    }
    there.make("/api/v1/nodes", node)
    assert there.run("detach", "--yes") == 1
    assert capsys.readouterr().err == (
        "dovetail detach: nothing is changed: Node n1 of Dovetail exists: pause Provisioners "
        "and NodePools and delete the Nodes (docs/operations/uninstall.md), or give "
        "--leave-nodes: then nothing removes their finalizer\n"
    )
    assert there.names(f"{IN_DOVETAIL}/configmaps") == ["dovetail-forwarder"]
    # The control plane may be gone already.
    there.control_plane = None
    assert there.run("detach", "--yes", "--leave-nodes") == 0
    assert there.names("/api/v1/nodes") == ["n1"]
    assert NAMESPACE not in there.names("/api/v1/namespaces")


def hold(there: There, name: str, finalizers: list[str]) -> None:
    there.merge(f"{DEFINITIONS}/{name}", {"metadata": {"finalizers": finalizers}})


def test_it_ends_once_what_was_deleted_is_gone(there: There, capsys: Captured) -> None:
    there.run("attach", "--yes", "--wait", "0")
    names = ["nodepools.karpenter.sh", "provisioners.karpenter.sh"]
    for name in names:
        hold(there, name, ["example.com/cleanup"])
    there.clock.happens = [lambda name=name: hold(there, name, []) for name in names]  # type: ignore[misc]
    capsys.readouterr()

    assert there.run("detach", "--yes") == 0

    told = capsys.readouterr().out
    line = "waiting until CustomResourceDefinition nodepools.karpenter.sh and 1 more are gone\n"
    assert told.count("waiting") == told.count(line) == 1
    assert there.names(DEFINITIONS) == []


def test_what_stays_is_named_and_nothing_is_attached_meanwhile(
    there: There, capsys: Captured
) -> None:
    there.run("attach", "--yes", "--wait", "0")
    hold(there, "nodepools.karpenter.sh", ["example.com/cleanup"])
    capsys.readouterr()

    assert there.run("detach", "--yes") == 1
    assert capsys.readouterr().err == (
        "dovetail detach: CustomResourceDefinition nodepools.karpenter.sh is still there after "
        "180 s: kubectl get customresourcedefinition nodepools.karpenter.sh -o yaml says in its "
        "status or finalizers what keeps it\n"
    )
    assert there.run("attach", "--yes", "--wait", "0") == 2
    assert capsys.readouterr().err == (
        "dovetail attach: CustomResourceDefinition nodepools.karpenter.sh: is being deleted: run "
        "it again in a minute\n"
    )
