"""Carrying a whole plan out: its launch groups, and what earlier invocations left open."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from shared.model.errors import PermanentError
from shared.model.launch import PlannedNode
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.ports import ClusterPorts, Site
from shared.services.announcing import Announcer
from shared.services.gathering import Gathered, site_of
from shared.services.held_lease import HeldLease
from shared.services.intent_book import LaunchOutcome
from shared.services.launch_request import LaunchGround, image_parameters, launch_groups
from shared.services.launching import Launcher


class PlanLauncher:
    """Launches plans for one cluster, under its lease.

    Attributes:
        launcher: Launches one group at a time; it knows what EC2 was short of.
    """

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        """Prepare for one invocation."""
        self._ports = ports
        self._announcer = Announcer(ports)
        self.launcher = Launcher(ports, lease, policy)

    def resume(self, snapshot: ClusterSnapshot) -> bool:
        """Carry on with open intents; return whether any came to its end.

        One that cannot go on is ended, or it would stop every plan after it.
        """
        provisioners = {one.name: one for one in snapshot.provisioners}
        ended = False
        for intent in snapshot.intents:
            provisioner = provisioners.get(intent.provisioner) or Provisioner(
                name=intent.provisioner
            )
            try:
                ground = self._ground(provisioner, site_of(self._ports, provisioner))
                outcome = self.launcher.resume(ground, intent)
            except PermanentError as error:
                self._announcer.cannot_launch(provisioner, str(error))
                outcome = self.launcher.give_up(intent)
            ended |= outcome != LaunchOutcome.LATER
        return ended

    def launch(
        self, gathered: Gathered, plan_id: str, nodes: Sequence[PlannedNode]
    ) -> tuple[LaunchOutcome, ...]:
        """Launch the nodes of a plan, group after group; return how each group ended."""
        provisioners = {one.name: one for one in gathered.snapshot.provisioners}
        grounds: dict[str, LaunchGround] = {}
        outcomes = []
        for number, group in enumerate(launch_groups(nodes)):
            name = group[0].provisioner
            try:
                if name not in grounds:
                    site = gathered.found_sites[name]
                    grounds[name] = self._ground(provisioners[name], site)
                outcomes.append(self.launcher.launch(grounds[name], plan_id, number, group))
            except PermanentError as error:
                # One provisioner that cannot launch must not stop the others.
                self._announcer.cannot_launch(provisioners[name], str(error))
        return tuple(outcomes)

    def wake_when_due(self) -> None:
        """Send the message that goes on with the first of the postponed launches, if any."""
        due = self.launcher.book.due
        if due is not None:
            wait = max(due - self._ports.clock.now(), timedelta(0))
            self._ports.outbox.wake(self._ports.cluster.name, wait)

    def _ground(self, provisioner: Provisioner, site: Site) -> LaunchGround:
        endpoint = self._ports.cloud.endpoint()
        instance_types = self._ports.catalog.instance_types()
        family = provisioner.template.ami_family
        images: Mapping[str, str] = self._ports.cloud.image_ids(
            image_parameters(instance_types, family, endpoint.version)
        )
        return LaunchGround(
            cluster=self._ports.cluster.name,
            provisioner=provisioner,
            endpoint=endpoint,
            site=site,
            images=images,
            instance_types={one.name: one for one in instance_types},
            profile=self._ports.instance_profile,
        )
