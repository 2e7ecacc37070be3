"""What examples/plan-node-pools says of its pods is what a plan does with them."""

from collections import Counter
from pathlib import Path

from functions.cli.plan.inputs import read_all, read_catalog
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.planning.decide import decide

FOLDER = Path(__file__).parents[5] / "examples" / "plan-node-pools"


def test_pods_get_nodes_of_the_pools_that_the_page_names() -> None:
    offline = read_snapshot(read_all([str(FOLDER)], []), read_catalog(None))
    plan = decide(offline.snapshot)
    assert not plan.unschedulable
    owners: dict[str, Counter[str]] = {}
    for node in plan.nodes:
        for pod in node.pods:
            owners.setdefault(pod.name.partition("-")[0], Counter())[node.provisioner] += 1
    assert sorted(owners["web"]) == ["on-demand", "spot"]
    assert (set(owners["cache"]), set(owners["batch"])) == ({"disks"}, {"older"})
    assert sum(node.provisioner == "spot" for node in plan.nodes) == 2
    assert [note for note in offline.notes if "not acted on" in note] == []
