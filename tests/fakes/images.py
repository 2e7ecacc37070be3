"""What an `amiSelector` finds, in memory."""

import fnmatch
from collections.abc import Iterable

from shared.model.ec2.selectors import ANY_VALUE, Selector, SelectorTerm
from shared.ports import MachineImage


def found_by(selector: Selector, images: Iterable[MachineImage]) -> list[MachineImage]:
    """Return the images that any term finds; all belong to this account."""
    return [image for image in images if any(_selects(term, image) for term in selector)]


def _selects(term: SelectorTerm, image: MachineImage) -> bool:
    ids = (*term.ids, *map(image_named, term.parameters))
    return (
        (not ids or image.image_id in ids)
        and (not term.names or any(fnmatch.fnmatchcase(image.name, name) for name in term.names))
        and (not term.owners or "self" in term.owners)
        and all(
            key in image.tags and (values == (ANY_VALUE,) or image.tags[key] in values)
            for key, values in term.tags.items()
        )
    )


def image_named(parameter: str) -> str:
    """Return an id that is the same for the same parameter in every run."""
    return f"ami-{sum(parameter.encode()) % 16**8:08x}"
