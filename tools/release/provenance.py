"""What a release was made from, as a statement of SLSA provenance; it is not signed.

Sign it, or the checksums, with a key of your own: nothing here has one.

Source: https://slsa.dev/spec/v1.1/provenance and
https://github.com/in-toto/attestation/blob/v1.1.0/spec/v1/statement.md (2026-12).
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

# Names of ours, as RFC 4151 makes them: nothing is to be fetched.
BUILD: Final = "tag:dovetail.dev,2026:make-release"
BUILDER: Final = "tag:dovetail.dev,2026:anyone-with-a-checkout"


def statement(
    *, version: str, epoch: int, commit: str, locks: Sequence[Path], parts: Sequence[Path]
) -> dict[str, Any]:
    """Return the statement.

    Args:
        locks: The files that lock what the build downloads.
        parts: What was made.
    """
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": part.name, "digest": {"sha256": _hash(part)}} for part in parts],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {"version": version, "SOURCE_DATE_EPOCH": epoch},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *({"name": lock.name, "digest": {"sha256": _hash(lock)}} for lock in locks),
                ],
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
