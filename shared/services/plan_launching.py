"""Carrying a whole plan out: its launch groups, and what earlier invocations left open."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from shared.model.errors import PermanentError
from shared.model.launch import PlannedNode
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.ports import ClusterPorts, Site
from shared.services.addresses import AddressBook
from shared.services.announcing import Announcer
from shared.services.gathering import Gathered, site_of
from shared.services.held_lease import HeldLease
from shared.services.image_rollout import ImageRollout
from shared.services.intent_book import LaunchOutcome
from shared.services.launch_request import LaunchGround, launch_groups
from shared.services.launching import Launcher
from shared.services.machine_image import resolve_images


class PlanLauncher:
    """Launches plans for one cluster, under its lease.

    Attributes:
        launcher: Launches one group at a time; it knows what EC2 was short of.
    """

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        """Prepare for one invocation."""
        self._ports = ports
        self._announcer = Announcer(ports)
        self._addresses = AddressBook()
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
                safe, _ = ImageRollout(self._ports).choose(provisioner.name, ground.images)
                ground = replace(ground, images=safe)
                outcome = self.launcher.resume(ground, intent)
            except PermanentError as error:
                self._announcer.cannot_launch(provisioner, str(error))
                outcome = self.launcher.give_up(intent)
            ended |= outcome != LaunchOutcome.LATER
        return ended

    def launch(
        self,
        gathered: Gathered,
        plan_id: str,
        nodes: Sequence[PlannedNode],
        *,
        replaces: str = "",
    ) -> tuple[LaunchOutcome, ...]:
        """Launch the nodes of a plan, group after group; return how each group ended.

        Args:
            replaces: Names of the nodes these are to replace, separated by commas.
        """
        provisioners = {one.name: one for one in gathered.snapshot.provisioners}
        for body in gathered.bodies:
            self._addresses.note(body)
        grounds: dict[str, LaunchGround] = {}
        outcomes = []
        numbers = itertools.count()
        for group in launch_groups(nodes):
            name = group[0].provisioner
            try:
                if name not in grounds:
                    site = gathered.found_sites[name]
                    grounds[name] = self._ground(provisioners[name], site)
                for ground, part in self._parts(grounds[name], group):
                    outcomes.append(
                        self.launcher.launch(
                            ground, plan_id, next(numbers), part, replaces=replaces
                        )
                    )
            except PermanentError as error:
                # One provisioner that cannot launch must not stop the others.
                self._announcer.cannot_launch(provisioners[name], str(error))
        return tuple(outcomes)

    def _parts(
        self, ground: LaunchGround, group: Sequence[PlannedNode]
    ) -> Iterator[tuple[LaunchGround, Sequence[PlannedNode]]]:
        """Yield what is launched with which images: a new one goes to one node first.

        What is yielded first is written down as a trial before it is asked for.
        """
        rollout, name = ImageRollout(self._ports), ground.provisioner.name
        rollout.note_first(name, ground.images)
        safe, tried = rollout.choose(name, ground.images)
        types = [one.offering.instance_type for one in group[0].options]
        if any(safe.of(one) != tried.of(one) for one in types) and rollout.begin(
            name, tried, types
        ):
            yield replace(ground, images=tried), group[:1]
            group = group[1:]
        if group:
            yield replace(ground, images=safe), group

    def wake_when_due(self) -> None:
        """Send the message that goes on with the first of the postponed launches, if any."""
        due = self.launcher.book.due
        if due is not None:
            wait = max(due - self._ports.clock.now(), timedelta(0))
            self._ports.outbox.wake(self._ports.cluster.name, wait)

    def _ground(self, provisioner: Provisioner, site: Site) -> LaunchGround:
        endpoint = self._ports.cloud.endpoint()
        instance_types = self._ports.catalog.instance_types()
        return LaunchGround(
            cluster=self._ports.cluster.name,
            provisioner=provisioner,
            endpoint=endpoint,
            site=site,
            images=resolve_images(
                self._ports.cloud,
                provisioner.template,
                endpoint.version,
                instance_types,
            ),
            profile=self._ports.instance_profile,
            instance_types={known.name: known for known in instance_types},
            addresses=self._addresses,
        )
