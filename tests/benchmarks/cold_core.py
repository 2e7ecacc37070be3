"""The core in a process of its own: reads the catalogue of a file and packs 400 pods.

python -S -m tests.benchmarks.cold_core catalogue.json
"""

import sys
from pathlib import Path

from shared.instance_types.catalog import load_catalog
from shared.model.resources import Resources
from shared.packing.packer import pack
from shared.packing.problem import ItemClass, NodeType, PackingProblem


def main(file_name: str) -> None:
    types = load_catalog(Path(file_name).read_text(encoding="utf-8")).instance_types
    node_types = tuple(
        NodeType(
            provisioner="default",
            instance_type=one.name,
            allocatable=one.allocatable,
            capacity=one.capacity,
            offerings=one.offerings,
            vcpus=one.capacity["cpu"] // 1000,
        )
        for one in types
    )
    pods = ItemClass(requests=Resources.of(cpu=250, memory=256 * 2**20, pods=1), count=400)
    packed = pack(
        PackingProblem(
            classes=(pods,), node_types=node_types, compatible=((1 << len(node_types)) - 1,)
        )
    )
    sys.stdout.write(f"{packed.cost_micros_per_hour}\n")


if __name__ == "__main__":
    main(sys.argv[1])
