"""With which taints a machine starts."""

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.nodes.launch.node_taints import kubelet_taints, node_taints
from tests.builders import provisioner

BATCH = Taint(key="batch", value="yes", effect=Effect.NO_SCHEDULE)
WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)


def test_the_node_object_has_the_taints_of_its_provisioner_ours_and_the_cloud_providers() -> None:
    found = node_taints(provisioner(taints=(BATCH,), startup_taints=(WAIT,)))
    assert [taint.describe() for taint in found] == [
        "batch=yes:NoSchedule",
        "cilium:NoExecute",
        "karpenter.sh/not-ready:NoSchedule",
        "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    ]


def test_the_kubelet_does_not_get_the_taint_that_it_adds_by_itself() -> None:
    cloud = Taint(key=keys.CLOUD_UNINITIALIZED_TAINT, effect=Effect.NO_SCHEDULE)
    found = kubelet_taints(provisioner(taints=(BATCH,), startup_taints=(WAIT, cloud)))
    assert [taint.describe() for taint in found] == [
        "batch=yes:NoSchedule",
        "cilium:NoExecute",
        "karpenter.sh/not-ready:NoSchedule",
    ]


def test_of_taints_with_the_same_key_and_effect_the_provisioners_own_comes_first() -> None:
    again = replace(BATCH, value="no")
    mixed = provisioner(taints=(BATCH,), startup_taints=(again, replace(again, effect=WAIT.effect)))
    named = [
        node_taint.describe() for node_taint in node_taints(mixed) if node_taint.key == BATCH.key
    ]
    assert named == ["batch=no:NoExecute", "batch=yes:NoSchedule"]
