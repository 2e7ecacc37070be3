"""Kubernetes quantities as exact integers.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ (2026-08).
"""

import re
from fractions import Fraction
from typing import Final

_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,2}))?",
    re.ASCII,
)
_BINARY: Final = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def parse_quantity(text: str | float) -> Fraction:
    """Return the exact value of a Kubernetes quantity in base units (cores, bytes, counts).

    Args:
        text: As written in a manifest; YAML may have made it a number already.

    Raises:
        ValueError: If the text is no quantity, such as `1GiB`.

    Example:
        >>> parse_quantity("250m")
        Fraction(1, 4)
        >>> parse_quantity("1Gi")
        Fraction(1073741824, 1)
    """
    match = None if isinstance(text, bool) else _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(
            f"{text!r} is not a quantity; write a number with one of the suffixes "
            "m k M G T P E Ki Mi Gi Ti Pi Ei"
        )
    value = Fraction(match["number"])
    if match["exponent"] is not None:
        return value * Fraction(10) ** int(match["exponent"])
    return value * _SUFFIXES[match["suffix"] or ""]


def parse_cpu_millis(text: str | float) -> int:
    """Return a cpu quantity in millicores, rounded up as the scheduler does.

    Raises:
        ValueError: If the text is no quantity.

    Example:
        >>> parse_cpu_millis("1.5")
        1500
    """
    return _ceil(parse_quantity(text) * 1000)


def parse_amount(text: str | float) -> int:
    """Return a quantity of anything but cpu in whole base units (bytes, counts), rounded up.

    Raises:
        ValueError: If the text is no quantity.

    Example:
        >>> parse_amount("512Mi")
        536870912
    """
    return _ceil(parse_quantity(text))


def milli_units(text: object) -> int | None:
    """Return a quantity in thousandths of its base unit, as admission compares them, rounded up.

    Null is zero; for a text that is no quantity the result is None.

    Example:
        >>> milli_units("250m"), milli_units("1Ki"), milli_units("1GiB")
        (250, 1024000, None)
    """
    try:
        return 0 if text is None else _ceil(parse_quantity(str(text)) * 1000)
    except ValueError:
        return None


def format_cpu(millis: int) -> str:
    """Return millicores as Kubernetes writes them.

    Example:
        >>> format_cpu(1500), format_cpu(2000)
        ('1500m', '2')
    """
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def format_bytes(amount: int) -> str:
    """Return bytes with the largest binary suffix that is exact.

    Example:
        >>> format_bytes(2**30), format_bytes(1000)
        ('1Gi', '1000')
    """
    if amount == 0:
        return "0"
    for power, suffix in zip(range(60, 0, -10), _BINARY, strict=True):
        if amount % (1 << power) == 0:
            return f"{amount >> power}{suffix}"
    return str(amount)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
