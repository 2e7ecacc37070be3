"""The brakes of a Provisioner: Dovetail's annotations on the object itself.

With `dovetail.dev/shadow: "true"`, decisions are recorded and reported, and not carried out.
`dovetail.dev/max-nodes: "10"` limits the number of its nodes, and
`dovetail.dev/max-price-per-hour: "12.50"` limits their total price in dollars per hour.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from shared.manifests.problems import Section
from shared.model import labels as keys
from shared.model.brakes import NO_CEILING, Ceiling

_WHOLE: Final = re.compile(r"\d{1,7}\Z", re.ASCII)
_DOLLARS: Final = re.compile(r"\d{1,7}(\.\d{1,6})?\Z", re.ASCII)
_MICROS: Final = 1_000_000


class ProvisionerBrakes(Struct, frozen=True, kw_only=True):
    """The brakes of one Provisioner."""

    shadow: bool = False
    ceiling: Ceiling = NO_CEILING


def read_brakes(metadata: Section) -> ProvisionerBrakes:
    """Return the brakes in the annotations of a Provisioner's metadata.

    A brake that cannot be read makes the Provisioner unusable, so that nothing is launched for it.
    """
    annotations = metadata.raw.get("annotations")
    if not isinstance(annotations, dict):
        return ProvisionerBrakes()
    section = Section(annotations, metadata.path_of("annotations"), metadata.problems)
    return ProvisionerBrakes(
        shadow=is_shadow(annotations),
        ceiling=Ceiling(
            max_nodes=_max_nodes(section), max_price_micros_per_hour=_max_price(section)
        ),
    )


def is_shadow(annotations: Mapping[str, Any]) -> bool:
    """Return whether the shadow annotation is set; any value but `false` counts."""
    value = annotations.get(keys.SHADOW)
    return value is not None and str(value).lower() != "false"


def is_paused(annotations: Mapping[str, Any]) -> bool:
    """Return whether the pause annotation is set; any value but `false` pauses."""
    value = annotations.get(keys.PAUSED)
    return value is not None and str(value).lower() != "false"


def _max_nodes(annotations: Section) -> int | None:
    value = annotations.raw.get(keys.MAX_NODES)
    if value is None:
        return None
    if not isinstance(value, str) or not _WHOLE.match(value):
        annotations.refuse(keys.MAX_NODES, 'write a whole number of 0 or more, such as "10"')
        return None
    return int(value)


def _max_price(annotations: Section) -> int | None:
    value = annotations.raw.get(keys.MAX_PRICE_PER_HOUR)
    if value is None:
        return None
    if not isinstance(value, str) or not _DOLLARS.match(value):
        annotations.refuse(keys.MAX_PRICE_PER_HOUR, 'write dollars an hour, such as "12.50"')
        return None
    return int(Decimal(value) * _MICROS)
