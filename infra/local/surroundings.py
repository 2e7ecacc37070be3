"""What a user's shell sets that servers on this machine must not see: proxies and AWS profiles."""

import os
from collections.abc import MutableMapping
from typing import Final

_LOOPBACK: Final = "127.0.0.1,localhost"
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_PROFILES: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_FILES: Final = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")


def stand_alone(environment: MutableMapping[str, str]) -> list[str]:
    """Set an environment so that loopback uses no proxy, and AWS no profile of the user.

    Returns:
        The lines that do the same in another terminal, as far as it needs them.
    """
    lines = [f"unset {name}" for name in _PROFILES if environment.pop(name, None) is not None]
    for name in _FILES:
        environment[name] = os.devnull
    if any(environment.get(name) or environment.get(name.lower()) for name in _PROXIES):
        known = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
        value = f"{known},{_LOOPBACK}" if known else _LOOPBACK
        for name in ("NO_PROXY", "no_proxy"):
            environment[name] = value
            lines.append(f"export {name}={value}")
    return lines
