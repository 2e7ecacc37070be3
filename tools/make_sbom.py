"""The software bill of materials (CycloneDX 1.6) of what is locked, and a check of licences.

    python -m tools.make_sbom --output .build/sbom.json

Read from the lock files, so it names exactly what is installed: names, versions, hashes. Licences
come from the metadata of the installed packages. The same locks give the same bytes.

Source: https://cyclonedx.org/docs/1.6/json/ (2026-08).
"""

import argparse
import base64
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[1]
RUNTIME: Final = (
    ROOT / "requirements" / "functions.txt",
    ROOT / "requirements" / "forwarder.txt",
)
DEVELOPMENT: Final = ROOT / "requirements" / "dev.txt"
NODE: Final = (
    ROOT / "package-lock.json",
    ROOT / "functions" / "cli" / "watch" / "page" / "package-lock.json",
)
_PIN: Final = re.compile(r"^([A-Za-z0-9][\w.\-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")

# Words of licences that may be shipped with an Apache-2.0 product.
PERMISSIVE: Final = (
    "0bsd",
    "apache",
    "bsd",
    "isc",
    "mit",
    "python software foundation",
    "psf",
    "unlicense",
    "zlib",
)
# Weak copyleft and others: used by files as they are, or only while developing.
EXPLAINED: Final[Mapping[str, str]] = {
    "certifi": "MPL-2.0: a list of certificates, shipped unchanged",
    "hypothesis": "MPL-2.0: runs in tests only",
    "orjson": "MPL-2.0 or Apache-2.0 and MIT by choice; local world only",
    "pathspec": "MPL-2.0: runs in development only",
    "shtab": "MPL-2.0: writes the completion of shells, used as it is",
    "tqdm": "MPL-2.0 and MIT: runs in development only",
}


def pins(lock: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (name, version, hashes) of a lock file of pip."""
    name, version, hashes = "", "", list[str]()
    for line in lock.read_text(encoding="utf-8").splitlines():
        found = _PIN.match(line)
        if found:
            if name:
                yield name, version, tuple(sorted(hashes))
            name, version, hashes = found[1], found[2], []
        hashes += _HASH.findall(line)
    if name:
        yield name, version, tuple(sorted(hashes))


def licence_of(name: str) -> str:
    """Return what an installed package says about its licence; empty when it is not installed."""
    try:
        about: Mapping[str, Any] = metadata.metadata(name).json
    except metadata.PackageNotFoundError:
        return ""
    stated = str(about.get("license_expression", ""))
    classified = [
        str(entry).rsplit(" :: ", 1)[1]
        for entry in about.get("classifier", ())
        if entry.startswith("License :: ") and entry != "License :: OSI Approved"
    ]
    text = str(about.get("license", "")).strip().splitlines()
    return stated or " and ".join(sorted(classified)) or (text[0][:80] if text else "")


def brought_by(requirements: Sequence[str]) -> dict[str, metadata.Distribution]:
    """Return by name the installed packages that are asked for, and what they need themselves.

    Args:
        requirements: As metadata has them; what an extra asks for is left out.

    Raises:
        metadata.PackageNotFoundError: If one is not installed.
    """
    found: dict[str, metadata.Distribution] = {}
    asked = [*requirements]
    while asked:
        requirement = Requirement(asked.pop())
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if name not in found:
            found[name] = metadata.distribution(name)
            asked += found[name].requires or ()
    return found


def document() -> dict[str, Any]:
    """Return the bill; what runs in AWS or comes with the wheel is required, the rest excluded."""
    wheel = brought_by(metadata.requires("dovetail-autoscaler") or ())
    shipped = {name for lock in RUNTIME for name, _, _ in pins(lock)} | wheel.keys()
    both = {
        (name, version): hashes
        for lock in (DEVELOPMENT, *RUNTIME)
        for name, version, hashes in pins(lock)
    }
    components = [
        _python(name, version, hashes, required=name in shipped)
        for (name, version), hashes in sorted(both.items())
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "dovetail",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [*components, *_node()],
    }


def unexplained(bill: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the components whose licence is neither permissive nor explained, sorted."""
    found = []
    for component in bill["components"]:
        text = component.get("licenses", [{"license": {"name": ""}}])[0]["license"]["name"]
        words = re.split(r"[^a-z0-9]+", text.lower())
        known = any(word in text.lower() if " " in word else word in words for word in PERMISSIVE)
        if not known and component["name"] not in EXPLAINED and component["scope"] == "required":
            found.append(
                f"{component['name']} {component['version']}: {text or 'no licence stated'}"
            )
    return tuple(sorted(found))


def _python(name: str, version: str, hashes: Sequence[str], *, required: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "scope": "required" if required else "excluded",
        # A wheel for each platform: each is a distribution of its own.
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"pkg:pypi/{name}@{version}",
                "hashes": [{"alg": "SHA-256", "content": value} for value in hashes],
            }
        ],
    }
    licence = licence_of(name)
    if licence:
        made["licenses"] = [{"license": {"name": licence}}]
    return made


def _node() -> Iterator[dict[str, Any]]:
    """Yield the packages of the command line of the CDK, and of the page: some are part of it."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for lock in NODE:
        for path, about in json.loads(lock.read_text(encoding="utf-8"))["packages"].items():
            if path:
                found[path.rpartition("node_modules/")[2], about["version"]] = about
    for (name, _), about in sorted(found.items()):
        algorithm, _, digest = about["integrity"].partition("-")
        yield {
            "type": "library",
            "bom-ref": f"pkg:npm/{name.replace('@', '%40')}@{about['version']}",
            "name": name,
            "version": about["version"],
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{about['version']}",
            "scope": "excluded" if about.keys() & {"dev", "devOptional"} else "required",
            "hashes": [
                {
                    "alg": algorithm.upper().replace("SHA", "SHA-"),
                    "content": base64.b64decode(digest).hex(),
                }
            ],
            "licenses": [{"license": {"name": about.get("license", "")}}],
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bill; 1 when a shipped package is under a licence that was not reviewed."""
    parser = argparse.ArgumentParser(prog="python -m tools.make_sbom", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(".build") / "sbom.json")
    given = parser.parse_args(arguments)
    bill = document()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    required = sum(1 for component in bill["components"] if component["scope"] == "required")
    sys.stdout.write(f"{given.output}: {len(bill['components'])} packages, {required} shipped\n")
    left = unexplained(bill)
    for value in left:
        sys.stderr.write(f"licence: {value}: look at it and add it to tools/make_sbom.py\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
