"""What the functions write into the status of custom resources; they read none of it strictly."""

from typing import Annotated

from shared.manifests.api.parts import Choice, Part, Shape

Moment = Annotated[str, Shape(format="date-time")]


class Condition(Part):
    """A condition, as everywhere in Kubernetes."""

    type: str
    status: Annotated[str, Choice("True", "False", "Unknown")]
    reason: str = ""
    message: str = ""
    last_transition_time: Moment = ""


# Several writers keep conditions side by side: each has a type of its own.
Conditions = Annotated[
    list[Condition],
    Shape(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]
