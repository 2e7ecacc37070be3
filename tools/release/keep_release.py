"""Keeps the templates of a release, to compare those of the next one with.

    python -m tools.release.keep_release cdk.out

The assembly has to hold a cluster named prod. Then `npx cdk diff --template` takes them, and a test
looks that nothing with a state is replaced or removed unseen.
"""

import json
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "tests" / "data" / "release"
STACKS: Final = ("DovetailControlPlane", "DovetailCluster-prod")


def main(assembly: str) -> int:
    """Copy the templates, sorted, so that they can be compared by eye."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for stack in STACKS:
        read = json.loads((Path(assembly) / f"{stack}.template.json").read_text(encoding="utf-8"))
        text = json.dumps(read, indent=1, sort_keys=True) + "\n"
        (FOLDER / f"{stack}.template.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
