"""What a fake remembers of being called."""

from typing import NamedTuple


class Call(NamedTuple):
    """One call that changes something: method, name of the object, further argument."""

    method: str
    subject: str
    argument: object = None
