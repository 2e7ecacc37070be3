"""Hands nodes over, one by one and step by step.

Nothing is remembered between steps: each first checks that Karpenter does not run and reads the
current state. So a migration that was killed continues where it stopped when it is run again, in
either direction.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from functions.cli.migrate.handover import (
    DOVETAIL_TAGS,
    KARPENTER_TAGS,
    Direction,
    Handover,
    HandoverStep,
    dovetail_annotations,
    dovetail_annotations_removed,
    next_step,
    why_not,
)
from functions.cli.migrate.karpenter import InstanceTags, Karpenter
from functions.cli.migrate.node_claim_documents import (
    kept_claim_text,
    node_claim_document,
    node_claim_status,
    read_kept_claim,
)
from functions.cli.migrate.node_claims import NodeClaim
from functions.cli.migrate.survey import MigrationSurvey, Surveyor
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.errors import ConflictError, PermanentError
from shared.model.values import replace
from shared.nodes.launch.slots import slot_of_instance
from shared.ports import ClusterPorts, NodeChange

# The holder of the cluster's lease plans for some seconds; new tags also appear after seconds.
_PAUSE: Final = timedelta(seconds=3)
_ATTEMPTS: Final = 20
_HOLDER: Final = "migrate"

OnStep = Callable[[HandoverStep], object]


class MigrationBlockedError(PermanentError):
    """Karpenter runs, or a node must not change hands now; the text says what to do.

    Attributes:
        blocks_all: Whether it applies to every node, because Karpenter runs.
    """

    def __init__(self, message: str, *, blocks_all: bool = False) -> None:
        super().__init__(message)
        self.blocks_all = blocks_all


class Migration:
    """Takes nodes over from Karpenter, and hands them back.

    Args:
        ports: Ports of the cluster.
        karpenter: Karpenter's objects in the cluster.
        tags: Changes the tags of the cluster's instances.
        wait: Waits for a time before a step is retried.
    """

    def __init__(
        self,
        ports: ClusterPorts,
        karpenter: Karpenter,
        tags: InstanceTags,
        wait: Callable[[timedelta], object],
    ) -> None:
        self._ports = ports
        self._karpenter = karpenter
        self._tags = tags
        self._wait = wait
        self._surveyor = Surveyor(ports, karpenter)
        self._steps: Mapping[HandoverStep, Callable[[Handover], object]] = {
            HandoverStep.KEEP_CLAIM: self._keep_claim,
            HandoverStep.WRITE_LEDGER: self._write_ledger,
            HandoverStep.ADD_DOVETAIL_TAGS: lambda handover: self._tag(
                handover, handover.dovetail_tags
            ),
            HandoverStep.REMOVE_KARPENTER_TAGS: lambda handover: self._untag(
                handover, KARPENTER_TAGS
            ),
            HandoverStep.UNLINK_NODE: self._unlink_node,
            HandoverStep.REMOVE_CLAIM_FINALIZER: lambda handover: self._karpenter.remove_finalizer(
                _claim(handover)
            ),
            HandoverStep.DELETE_CLAIM: lambda handover: self._karpenter.delete_node_claim(
                _claim(handover)
            ),
            HandoverStep.OWN_NODE: self._own_node,
            HandoverStep.CLOSE_SLOT: self._close_slot,
            HandoverStep.DISOWN_NODE: self._disown_node,
            HandoverStep.MAKE_CLAIM: self._make_claim,
            HandoverStep.WRITE_STATUS: self._write_status,
            HandoverStep.LINK_NODE: self._link_node,
            HandoverStep.ADD_KARPENTER_TAGS: lambda handover: self._tag(
                handover, handover.karpenter_tags
            ),
            HandoverStep.REMOVE_DOVETAIL_TAGS: lambda handover: self._untag(
                handover, DOVETAIL_TAGS
            ),
            HandoverStep.DROP_LEDGER: self._drop_ledger,
            HandoverStep.FORGET_CLAIM: self._forget_claim,
        }

    def survey(self, direction: Direction) -> MigrationSurvey:
        """Return which nodes can change hands; nothing is changed."""
        return self._surveyor.survey(direction)

    def migrate_node(self, name: str, direction: Direction, on_step: OnStep) -> None:
        """Hand one node over, step by step.

        Args:
            on_step: Called after each step.

        Raises:
            MigrationBlockedError: If Karpenter runs, or the node must not change hands now.
            RetryableError: If every attempt at a step conflicted with another writer.
        """
        tries_left = _ATTEMPTS
        last: HandoverStep | None = None
        while True:
            if running := self._karpenter.running():
                raise MigrationBlockedError("; ".join(running), blocks_all=True)
            handover = self._surveyor.read_node(name)
            if handover is None:
                raise MigrationBlockedError(f"node {name} is gone")
            step = next_step(handover, direction)
            if step is None:
                return
            if reason := why_not(handover, direction):
                raise MigrationBlockedError(f"node {name}: {reason}")
            tries_left = tries_left - 1 if step == last else _ATTEMPTS
            if not tries_left:
                raise ConflictError(
                    f"node {name}: after {_ATTEMPTS} tries not {step}; run it again"
                )
            if step == last:
                self._wait(_PAUSE)
            last = step
            try:
                self._steps[step](handover)
            except ConflictError:
                # Another program wrote meanwhile: the next read shows what.
                continue
            on_step(step)

    # --- taking over

    def _keep_claim(self, handover: Handover) -> None:
        self._change(
            handover,
            NodeChange(set_annotations={keys.NODE_CLAIM: kept_claim_text(_claim(handover))}),
        )

    def _write_ledger(self, handover: Handover) -> None:
        """Pair the instance with a slot, under the lease: no plan may be under way."""
        ledger, name = self._ports.ledger, self._ports.cluster.name
        lease = ledger.acquire(name, _HOLDER, self._ports.clock.now())
        if lease is None:
            raise ConflictError(f"cluster {name}: a plan is under way")
        try:
            if handover.slot is not None:
                # Only one row of the pair is lost: both are written again.
                ledger.drop_slot(handover.slot, lease)
            ledger.fill_slot(lease, self._slot(handover))
        finally:
            while not ledger.release(lease):
                # A plan was requested meanwhile and left to the holder of the lease.
                self._ports.outbox.wake(name, timedelta(0))

    def _unlink_node(self, handover: Handover) -> None:
        node, claim = handover.node, handover.claim
        finalizers = tuple(name for name in node.finalizers if name != keys.TERMINATION_FINALIZER)
        owners = frozenset({claim.uid} if claim is not None else ())
        self._change(handover, NodeChange(finalizers=finalizers, drop_owners=owners))

    def _own_node(self, handover: Handover) -> None:
        node, owner = handover.node, handover.owner
        assert owner is not None
        change = NodeChange(
            set_annotations=dovetail_annotations(handover, self._slot(handover)),
            finalizers=tuple(sorted({*node.finalizers, keys.TERMINATION_FINALIZER})),
            owner=None if owner.uid in node.owners else owner,
        )
        self._change(handover, change)

    def _close_slot(self, handover: Handover) -> None:
        assert handover.slot is not None
        self._ports.ledger.drop_slot(handover.slot)

    # --- handing back

    def _disown_node(self, handover: Handover) -> None:
        node, owner = handover.node, handover.owner
        change = NodeChange(
            set_annotations=dovetail_annotations_removed(),
            finalizers=tuple(
                name for name in node.finalizers if name != keys.TERMINATION_FINALIZER
            ),
            drop_owners=frozenset({owner.uid} if owner is not None else ()),
        )
        self._change(handover, change)

    def _make_claim(self, handover: Handover) -> None:
        assert handover.owner is not None
        document = node_claim_document(read_kept_claim(handover.node), handover.owner)
        claim = self._karpenter.make_node_claim(document)
        # Immediately: a Karpenter that starts in between launches an instance for it.
        self._write_status(replace(handover, claim=claim))

    def _write_status(self, handover: Handover) -> None:
        assert handover.instance is not None
        status = node_claim_status(handover.node, handover.instance, self._ports.clock.now())
        self._karpenter.write_status(_claim(handover), status)

    def _link_node(self, handover: Handover) -> None:
        node, claim = handover.node, _claim(handover)
        change = NodeChange(
            finalizers=tuple(sorted({*node.finalizers, keys.TERMINATION_FINALIZER})),
            owner=None if claim.uid in node.owners else claim.as_owner(),
        )
        self._change(handover, change)

    def _drop_ledger(self, handover: Handover) -> None:
        if handover.slot is not None:
            self._ports.ledger.drop_slot(handover.slot)
        self._ports.ledger.drop_instance(handover.node.instance_id)

    def _forget_claim(self, handover: Handover) -> None:
        self._change(handover, NodeChange(set_annotations={keys.NODE_CLAIM: None}))

    # --- either

    def _change(self, handover: Handover, change: NodeChange) -> None:
        self._ports.cluster.change_node(handover.node, change)

    def _tag(self, handover: Handover, tags: Mapping[str, str]) -> None:
        self._tags.tag(handover.node.instance_id, tags)

    def _untag(self, handover: Handover, tag_keys: tuple[str, ...]) -> None:
        self._tags.untag(handover.node.instance_id, tag_keys)

    def _slot(self, handover: Handover) -> Slot:
        """Return the slot of an instance, the same at each call."""
        assert handover.instance is not None
        types = {entry.name: entry for entry in self._ports.catalog.instance_types()}
        of_type = types.get(handover.instance.offering.instance_type)
        tagged = replace(
            handover.instance, tags={**handover.instance.tags, **handover.dovetail_tags}
        )
        now = self._ports.clock.now()
        return slot_of_instance(handover.cluster, tagged, handover.node, of_type, now)


def _claim(handover: Handover) -> NodeClaim:
    assert handover.claim is not None
    return handover.claim
