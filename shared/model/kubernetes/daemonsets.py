"""DaemonSets, as far as their pods take room on nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.model.kubernetes.pods import Scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """One DaemonSet.

    Attributes:
        labels: Of its pods, for the rules that count them.
        scheduling: That of its pod template, tolerations of daemons included.
        generation: Of its pod template, as its pods say it in a label; empty where it does not say.
        problem: Why its controller makes no pods, empty when it does.
    """

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    scheduling: Scheduling
    uid: str = ""
    generation: str = ""
    problem: str = ""

    @property
    def key(self) -> str:
        """Namespace and name, the way people name a DaemonSet."""
        return f"{self.namespace}/{self.name}"
