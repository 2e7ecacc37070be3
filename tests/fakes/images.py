"""What an `amiSelector` finds, in memory."""

import fnmatch
from collections.abc import Iterable, Mapping

from shared.ports import MachineImage


def found_by(selector: Mapping[str, str], images: Iterable[MachineImage]) -> list[MachineImage]:
    """Return the images that have all that is asked for; all belong to this account."""
    return [image for image in images if _selects(selector, image)]


def _selects(selector: Mapping[str, str], image: MachineImage) -> bool:
    for key, text in selector.items():
        values = text.split(",")
        if key == "aws-ids":
            fits = image.image_id in values
        elif key == "aws::name":
            fits = any(fnmatch.fnmatchcase(image.name, value) for value in values)
        elif key == "aws::owners":
            fits = "self" in values
        else:
            fits = key in image.tags and (text == "*" or image.tags[key] in values)
        if not fits:
            return False
    return True


def image_named(parameter: str) -> str:
    """Return an id that is the same for the same parameter in every run."""
    return f"ami-{sum(parameter.encode()) % 16**8:08x}"
