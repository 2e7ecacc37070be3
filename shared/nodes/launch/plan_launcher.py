"""Launches a whole plan: its launch groups, and the intents that earlier invocations left open."""

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from shared.model.ec2.launches import PlannedNode
from shared.model.errors import PermanentError
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.nodes.events.plan_events import record_cannot_launch
from shared.nodes.launch.ami_canary import ImageCanary
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.intents import LaunchOutcome
from shared.nodes.launch.launch_request import LaunchContext, launch_groups
from shared.nodes.launch.launcher import Launcher
from shared.nodes.launch.refusals.refusal_actions import RefusalActions
from shared.nodes.launch.subnet_addresses import AddressReservations
from shared.ports import ClusterPorts, Site
from shared.snapshot.gather import Gathered, site_of
from shared.snapshot.images import resolve_images


class PlanLauncher:
    """Launches plans for one cluster, under its lease.

    Attributes:
        launcher: Launches one group at a time; it records what EC2 refused.
        refusal_actions: Acts on what EC2 refused.
    """

    def __init__(self, ports: ClusterPorts, held_lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._addresses = AddressReservations()
        self.launcher = Launcher(ports, held_lease, policy)
        self.refusal_actions = RefusalActions(ports)

    @property
    def failed_attempts(self) -> int:
        """The number of calls so far that launched nothing."""
        return self.launcher.refusals.failed_attempts

    @property
    def answers(self) -> int:
        """The number of calls to CreateFleet and of refusals so far: it grows with each answer."""
        return self.launcher.calls + len(self.refusal_actions.reported)

    def resume(self, gathered: Gathered, until: datetime) -> bool:
        """Resume open intents; return whether any was closed.

        An intent that cannot continue is closed, or it would block every later plan. So is an
        intent of a Provisioner that is gone or invalid, or for which EC2 is not called now.

        Args:
            until: Only the first intent is started after this time; a wake message resumes the
                others.
        """
        provisioners = {
            provisioner.name: provisioner for provisioner in gathered.snapshot.provisioners
        }
        sites: dict[str, Site] = {}
        self.launcher.refusals.subnets |= gathered.refusals.subnets
        ended = False
        for number, intent in enumerate(gathered.snapshot.intents):
            if number and self._is_late(until):
                break
            provisioner = provisioners.get(intent.provisioner)
            if provisioner is None:
                ended |= self.launcher.abandon(intent) != LaunchOutcome.LATER
                continue
            site = sites[provisioner.name] = site_of(self._ports, provisioner)
            refusals = gathered.refusals.of(self._ports, provisioner, site)
            if refusals.blocked(self._ports.clock.now()):
                ended |= self.launcher.abandon(intent) != LaunchOutcome.LATER
                continue
            try:
                context = self._launch_context(provisioner, site)
                safe, _ = ImageCanary(self._ports).choose(provisioner, context.images)
                context = replace(context, images=safe)
                outcome = self.launcher.resume(context, intent)
            except PermanentError as error:
                record_cannot_launch(self._ports, provisioner, str(error))
                outcome = self.launcher.abandon(intent)
            ended |= outcome != LaunchOutcome.LATER
        self.refusal_actions.on_launches(self.launcher.refusals.take(), sites, gathered)
        return ended

    def abandon(self, gathered: Gathered) -> bool:
        """Pair what EC2 shows of open intents and close them, while nothing may be launched.

        Returns:
            Whether any was closed.
        """
        outcomes = [self.launcher.abandon(intent) for intent in gathered.snapshot.intents]
        return any(outcome != LaunchOutcome.LATER for outcome in outcomes)

    def launch(
        self,
        gathered: Gathered,
        plan_id: str,
        nodes: Sequence[PlannedNode],
        *,
        until: datetime | None = None,
        replaces: str = "",
    ) -> tuple[LaunchOutcome, ...]:
        """Launch the nodes of a plan, one group after the other; return the outcome of each.

        Args:
            until: Only the first group is started after this time, None for no limit; after a wake
                message the pods of the others are planned again.
            replaces: Names of the nodes that these will replace, separated by commas.
        """
        provisioners = {
            provisioner.name: provisioner for provisioner in gathered.snapshot.provisioners
        }
        for body in gathered.bodies:
            self._addresses.reserve(body)
        self.launcher.refusals.subnets |= gathered.refusals.subnets
        contexts: dict[str, LaunchContext] = {}
        outcomes: list[LaunchOutcome] = []
        numbers = itertools.count()
        for group in launch_groups(nodes):
            if outcomes and until is not None and self._is_late(until):
                break
            name = group[0].provisioner
            try:
                if name not in contexts:
                    site = gathered.found_sites[name]
                    contexts[name] = self._launch_context(provisioners[name], site)
                for context, part in self._parts(contexts[name], group):
                    outcomes.append(
                        self.launcher.launch(
                            context, plan_id, next(numbers), part, replaces=replaces
                        )
                    )
            except PermanentError as error:
                # A Provisioner that cannot launch must not stop the others.
                record_cannot_launch(self._ports, provisioners[name], str(error))
        sites = {name: context.site for name, context in contexts.items()}
        self.refusal_actions.on_launches(self.launcher.refusals.take(), sites, gathered)
        return tuple(outcomes)

    def _is_late(self, until: datetime) -> bool:
        """Return whether the time for launches is over; if so, schedule a wake message."""
        late = self._ports.clock.now() >= until
        if late:
            self.launcher.intents.wait_until(self._ports.clock.now())
        return late

    def _parts(
        self, context: LaunchContext, group: Sequence[PlannedNode]
    ) -> Iterator[tuple[LaunchContext, Sequence[PlannedNode]]]:
        """Yield the nodes and their images: a new image goes to one node first.

        The trial is saved before that node is yielded.
        """
        image_canary, name = ImageCanary(self._ports), context.provisioner.name
        image_canary.save_first_images(name, context.images)
        safe, canary = image_canary.choose(context.provisioner, context.images)
        types = [option.offering.instance_type for option in group[0].options]
        if any(safe.of(type_) != canary.of(type_) for type_ in types) and image_canary.begin_trial(
            name, canary, types
        ):
            yield replace(context, images=canary), group[:1]
            group = group[1:]
        if group:
            yield replace(context, images=safe), group

    def wake_when_due(self) -> None:
        """Send the wake message for the first of the postponed and refused launches, if any."""
        due = [at for at in (self.launcher.intents.due, self.refusal_actions.retry_at) if at]
        if due:
            wait = max(min(due) - self._ports.clock.now(), timedelta(0))
            self._ports.outbox.wake(self._ports.cluster.name, wait)

    def _launch_context(self, provisioner: Provisioner, site: Site) -> LaunchContext:
        endpoint = self._ports.cloud.endpoint()
        instance_types = self._ports.catalog.instance_types()
        return LaunchContext(
            cluster=self._ports.cluster.name,
            provisioner=provisioner,
            endpoint=endpoint,
            site=site,
            images=resolve_images(
                self._ports.cloud,
                provisioner.template,
                endpoint.version,
                instance_types,
                provisioner.dialect,
            ),
            profile=self._ports.profile_of(provisioner.template),
            metadata=self._ports.metadata,
            instance_types={known.name: known for known in instance_types},
            addresses=self._addresses,
        )
