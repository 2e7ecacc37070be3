"""DaemonSets, as far as their pods use capacity of nodes."""

from collections.abc import Mapping

from msgspec import Struct, field

from shared.model.kubernetes.pods import Scheduling


class DaemonSet(Struct, frozen=True, kw_only=True):
    """One DaemonSet.

    Attributes:
        labels: Labels of its pods, for the rules that count them.
        scheduling: Of its pod template, the tolerations of DaemonSet pods included.
        generation: Of its pod template, as in a label of its pods; empty where unknown.
        problem: Why its controller creates no pods, empty when it does.
    """

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    scheduling: Scheduling
    uid: str = ""
    generation: str = ""
    problem: str = ""

    @property
    def key(self) -> str:
        """Namespace and name, the way people name a DaemonSet."""
        return f"{self.namespace}/{self.name}"
