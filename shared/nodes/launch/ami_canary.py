"""The AMI canary: a new image is launched on one node first; others get the last that worked.

A note of the ledger records what is known of a Provisioner's images. For each image kind it holds
the ID that last registered a node (good), the ID on trial and since when (trial), and the ID whose
instance did not register, with the time (bad). It is written before an instance is launched with a
new image, and again when the node is initialized or its instance is terminated because it did not
register in time. A trial without an outcome times out and is repeated, so a crash costs minutes and
no result.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.codec import from_plain, to_plain
from shared.model.ec2.image_table import ImageTable
from shared.model.kubernetes.nodes import Node
from shared.model.note import Note
from shared.model.policy import KarpenterBehavior
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorder import EventRecorder
from shared.ports import NodePorts

IMAGE_NOTES: Final = "images#"
# Longer than an instance may take to register, its launch included.
_TRIAL: Final = timedelta(minutes=10)
# After this time an image that did not register is tried again: its cause may be gone.
_FORGIVEN: Final = timedelta(hours=6)
_KEEP: Final = timedelta(days=400)
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ImageHistory(Struct, frozen=True, kw_only=True):
    """What is known of one image kind of one Provisioner.

    Attributes:
        good: The ID that last registered a node, empty if none is known.
        trial: The ID that is on trial on one node, empty if none is.
        bad: The ID whose instance last failed to register, empty if there is none.
    """

    good: str = ""
    trial: str = ""
    trial_at: datetime = _LONG_AGO
    bad: str = ""
    bad_at: datetime = _LONG_AGO


class ImageChoice(Struct, frozen=True, kw_only=True):
    """Which images the nodes of one plan get.

    Attributes:
        safe: From image kind to ID, for all nodes but one.
        canary: The same for that one node; equal to `safe` if no image is to be tried.
    """

    safe: Mapping[str, str]
    canary: Mapping[str, str]


def choose_images(
    newest: Mapping[str, str], histories: Mapping[str, ImageHistory], now: datetime
) -> ImageChoice:
    """Return which image of each kind to launch.

    The first image of a kind counts as good: there is no earlier one to fall back to.

    Args:
        newest: From image kind to the newest ID.
        histories: By image kind.
    """
    safe, canary = {}, {}
    for kind, image in newest.items():
        history = histories.get(kind, ImageHistory())
        refused = history.bad == image and now - history.bad_at < _FORGIVEN
        under_way = history.trial == image and now - history.trial_at < _TRIAL
        safe[kind] = history.good or image
        canary[kind] = safe[kind] if refused or under_way else image
    return ImageChoice(safe=safe, canary=canary)


class ImageCanary:
    """Keeps the note of each Provisioner's images in one cluster."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def choose(self, owner: Provisioner, images: ImageTable) -> tuple[ImageTable, ImageTable]:
        """Return the images for all nodes of a plan but one, and those for that one.

        Both are the same if there is no new image, or if the owner does not try images on one node
        first.
        """
        if KarpenterBehavior.IMAGES in owner.as_karpenter:
            return images, images
        now = self._ports.clock.now()
        histories = _histories(self._note(owner.name))
        choice = choose_images(images.ids, histories, now)
        return images.with_ids(choice.safe), images.with_ids(choice.canary)

    def waiting_reasons(self, owner: Provisioner, images: ImageTable) -> dict[str, str]:
        """Return why nodes keep the last image that worked for now, by the ID of that image.

        Kinds whose newest image has not been tried are left out: the first of their nodes is
        replaced to try it.
        """
        safe, canary = self.choose(owner, images)
        now, histories = self._ports.clock.now(), _histories(self._note(owner.name))
        return {
            safe.ids[kind]: _outcome(newest, histories[kind], now)
            for kind, newest in images.ids.items()
            if newest != canary.ids[kind] == safe.ids[kind]
        }

    def begin_trial(
        self, provisioner: str, images: ImageTable, instance_types: Iterable[str]
    ) -> bool:
        """Record a trial of images, before the one node with them is launched.

        Args:
            instance_types: The types that the node may be launched as.

        Returns:
            False if the note was changed meanwhile: the node gets the safe images.
        """
        note, now = self._note(provisioner), self._ports.clock.now()
        histories = _histories(note)
        for kind in sorted(
            {images.kinds.get(instance_type, "") for instance_type in instance_types}
            & {*images.ids}
        ):
            before = histories.get(kind, ImageHistory())
            if before.good and before.good != images.ids[kind]:
                histories[kind] = replace(before, trial=images.ids[kind], trial_at=now)
        return self._write(note, histories)

    def save_first_images(self, provisioner: str, images: ImageTable) -> None:
        """Record the first image of each new kind: later failures fall back to it."""
        note = self._note(provisioner)
        histories = _histories(note)
        new = {
            kind: ImageHistory(good=value)
            for kind, value in images.ids.items()
            if kind not in histories
        }
        if new:
            # A concurrent writer that wins has written the same.
            self._write(note, histories | new)

    def save_success(self, node: Node) -> None:
        """Record that a node has been initialized: its image works."""
        note = self._note(node.provisioner)
        image = node.annotations.get(keys.IMAGE_ID, "")
        histories = _histories(note)
        works = {
            kind: ImageHistory(good=image)
            for kind, history in histories.items()
            if image and image in (history.trial, history.bad)
        }
        if works:
            self._write(note, histories | works)

    def save_failure(self, node: Node) -> bool:
        """Record that an instance did not register: a trial of its image ends.

        Returns:
            Whether its image was on trial and this is the first failure recorded.
        """
        note, now = self._note(node.provisioner), self._ports.clock.now()
        image = node.annotations.get(keys.IMAGE_ID, "")
        histories = _histories(note)
        stopped = {
            kind: replace(history, trial="", bad=image, bad_at=now)
            for kind, history in histories.items()
            if image and history.trial == image
        }
        if not stopped or not self._write(note, histories | stopped):
            return False
        good = ", ".join(sorted({image.good for image in stopped.values()}))
        text = (
            f"image {image} was tried on {node.instance_id}, which did not register: nodes get "
            f"{good} as before; the new one is tried again in {_FORGIVEN // timedelta(hours=1)} h"
        )
        owners, _ = self._ports.cluster.provisioners()
        EventRecorder(self._ports).record(
            event_on(owner, "ImageNotRegistering", text) for owner in owners if owner.owns(node)
        )
        return True

    def save_missing_images(self, provisioner: str, used: Collection[str]) -> None:
        """Record that EC2 no longer knows some of these images.

        An image on trial counts as one that did not register. If it is the good image, the history
        of its kind is dropped: no other image is known to work, so the newest takes its place.
        """
        note, now = self._note(provisioner), self._ports.clock.now()
        histories = {
            kind: replace(history, trial="", bad=history.trial, bad_at=now)
            if history.trial in used
            else history
            for kind, history in _histories(note).items()
            if history.good not in used
        }
        self._write(note, histories)

    def _note(self, provisioner: str) -> Note:
        return self._ports.ledger.note(self._ports.cluster.name, f"{IMAGE_NOTES}{provisioner}")

    def _write(self, note: Note, histories: Mapping[str, ImageHistory]) -> bool:
        value = to_plain(histories)
        if value == note.value:
            return True
        until = self._ports.clock.now() + _KEEP
        changed = replace(note, value=value)
        return self._ports.ledger.change_note(self._ports.cluster.name, changed, until)


def _outcome(newest: str, history: ImageHistory, now: datetime) -> str:
    if history.bad == newest and now - history.bad_at < _FORGIVEN:
        again = f"{history.bad_at + _FORGIVEN:%H:%M} UTC"
        return f"image {newest} did not register a node: it is tried again after {again}"
    return f"image {newest} is tried on one node first"


def _histories(note: Note) -> dict[str, ImageHistory]:
    return from_plain(dict[str, ImageHistory], note.value)
