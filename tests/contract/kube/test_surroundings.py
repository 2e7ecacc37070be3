"""What is read inside a cluster before anything is deployed."""

from typing import Any, cast

import pytest

from functions.cli.doctor.kube_prerequisites import KubePrerequisites
from shared.kube.api import KubeApi, Reply
from shared.kube.provisioners import PROVISIONERS_PATH
from shared.model.errors import UnauthorizedError
from tests.fakes.clock import FakeClock

ACCOUNT = "/api/v1/namespaces/kube-system/serviceaccounts/aws-node"
AGENT = "/apis/apps/v1/namespaces/kube-system/daemonsets/eks-pod-identity-agent"
ROLE = "arn:aws:iam::123456789012:role/cni"


class Api:
    """Answers each path as it is told, and 404 otherwise."""

    def __init__(self, **replies: Reply) -> None:
        self.replies = {
            ACCOUNT: replies.get("account"),
            PROVISIONERS_PATH: replies.get("provisioners"),
            AGENT: replies.get("agent"),
        }

    def send(self, method: str, path: str, *, query: Any = (), **_: Any) -> Reply:
        assert method == "GET"
        del query
        return self.replies.get(path) or Reply(status=404, body={"message": "not found"})


def surroundings(**replies: Reply) -> KubePrerequisites:
    return KubePrerequisites(cast("KubeApi", Api(**replies)), FakeClock().now, ())


@pytest.mark.parametrize(
    ("annotations", "role"),
    [({"eks.amazonaws.com/role-arn": ROLE}, ROLE), ({"other": "x"}, ""), (None, "")],
)
def test_the_role_of_the_network_plugin_is_read_from_its_annotation(
    annotations: dict[str, str] | None, role: str
) -> None:
    answer = Reply(status=200, body={"metadata": {"annotations": annotations}})

    assert surroundings(account=answer).annotated_role("kube-system", "aws-node") == role


def test_a_cluster_without_the_network_plugin_of_aws_has_no_role_for_it() -> None:
    assert surroundings().annotated_role("kube-system", "aws-node") == ""


def test_a_daemon_set_is_found_by_its_name() -> None:
    running = surroundings(agent=Reply(status=200, body={"kind": "DaemonSet"}))

    assert running.has_daemon_set("kube-system", "eks-pod-identity-agent")
    assert not running.has_daemon_set("kube-system", "other")


def test_missing_permission_is_reported() -> None:
    refused = Reply(status=403, body={"message": "no"})

    with pytest.raises(UnauthorizedError):
        surroundings(account=refused).annotated_role("kube-system", "aws-node")


def test_provisioners_that_are_not_defined_yet_are_none() -> None:
    empty = Reply(status=200, body={"items": []})

    assert surroundings().provisioners() == ()
    assert surroundings(provisioners=empty).provisioners() == ()
