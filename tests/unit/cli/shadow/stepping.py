"""A record in memory that time passes for, and the nodes and pods that it observes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from functions.cli.shadow.fleet import Fleet, Observation, Step
from functions.cli.shadow.simulation import ShadowRules
from functions.cli.shadow.step import step
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.provisioning.savings.pools import NODE_GROUP
from tests import builders as make

NOW = make.NOW
MINUTE = timedelta(minutes=1)
RULES = ShadowRules(instance_types=make.CATALOG, longest_pause=timedelta(hours=1))
OWNER = make.provisioner(consolidation=True)
LONG_AGO = NOW - timedelta(hours=2)


def real(name: str, kind: str = "m5.large", **overrides: Any) -> Node:
    """A node of Provisioner default that another autoscaler launched."""
    found = make.node_of(name, kind, **{"created_at": LONG_AGO, **overrides})
    return replace(found, annotations=overrides.get("annotations", {}))


def of_group(name: str, group: str, kind: str = "m5.large", **overrides: Any) -> Node:
    found = real(name, kind, **overrides)
    others = {k: v for k, v in found.labels.items() if k != keys.PROVISIONER_NAME}
    return replace(found, labels={**others, NODE_GROUP: group})


def on(node: str, name: str, **overrides: Any) -> Pod:
    return make.pod(name, node_name=node, **{"created_at": LONG_AGO, **overrides})


class Watched:
    """A record in memory that time passes for."""

    def __init__(self, rules: ShadowRules = RULES, *owners: Provisioner) -> None:
        self.rules = rules
        self.owners = owners or (OWNER,)
        self.fleet = Fleet()
        self.now: datetime = NOW
        self.last = Step(fleet=self.fleet)

    def see(
        self,
        nodes: Sequence[Node],
        pods: Sequence[Pod] = (),
        after: timedelta = timedelta(0),
        **more: Any,
    ) -> list[str]:
        """Observe a cluster after some time; return what Dovetail would do."""
        self.now += after
        observed = Observation(
            at=self.now,
            nodes=tuple(nodes),
            pods=tuple(pods),
            **{"provisioners": self.owners, **more},
        )
        self.last = step(self.fleet, observed, self.rules)
        self.fleet = self.last.fleet
        return [decision.text.partition(". $")[0] for decision in self.last.decisions]

    @property
    def running(self) -> list[str]:
        """What runs in the shadow fleet, by name and type."""
        return sorted(
            f"{name} {entry.run.instance_type}"
            for name, entry in self.fleet.nodes.items()
            if entry.run.ended_at is None
        )
