"""Parts of a problem that share neither node types nor bins: each is packed by itself.

Pods that are spread over zones, for example, are assigned to a zone each before they are packed; no
node takes pods of two zones. A search over all zones together takes longer and finds worse plans.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shared.model.values import replace
from shared.packing.problem import PackedNode, Packing, PackingProblem


class Component(NamedTuple):
    """A part of a problem, with the indexes of its classes, node types and bins in the whole."""

    problem: PackingProblem
    classes: tuple[int, ...]
    node_types: tuple[int, ...]
    bins: tuple[int, ...]


def components(problem: PackingProblem) -> tuple[Component, ...]:
    """Return the parts of a problem, by their first class; a single one if there are limits."""
    bins = problem.compatible_bins or (0,) * len(problem.classes)
    asked: dict[tuple[int, int], list[int]] = {}
    for k, (node_types, there) in enumerate(zip(problem.compatible, bins, strict=True)):
        asked.setdefault((node_types, there), []).append(k)
    parts: list[tuple[int, int, list[int]]] = []
    for (node_types, there), classes in asked.items():
        apart = []
        for part in parts:
            if part[0] & node_types or part[1] & there:
                node_types, there = node_types | part[0], there | part[1]  # noqa: PLW2901 -- grows
                classes = part[2] + classes  # noqa: PLW2901
            else:
                apart.append(part)
        parts = [*apart, (node_types, there, classes)]
    if problem.limits or len(parts) <= 1:
        return (_whole(problem),)
    parts.sort(key=lambda part: min(part[2]))
    return tuple(_component(problem, bins, *part) for part in parts)


def _whole(problem: PackingProblem) -> Component:
    sizes = (len(problem.classes), len(problem.node_types), len(problem.bins))
    return Component(problem, *(tuple(range(size)) for size in sizes))


def _component(
    problem: PackingProblem,
    bins: Sequence[int],
    node_types: int,
    bins_mask: int,
    classes: list[int],
) -> Component:
    kept, own_bins = tuple(_bits(node_types)), tuple(_bits(bins_mask))
    own = tuple(sorted(classes))
    settings = problem.settings
    if sum(pod_class.count for pod_class in problem.classes) > settings.small_batch_pods:
        # A small part of a large batch: nothing says that more pods follow soon.
        settings = replace(settings, small_batch_pods=0)
    own_problem = replace(
        problem,
        classes=tuple(problem.classes[k] for k in own),
        node_types=tuple(problem.node_types[i] for i in kept),
        bins=tuple(problem.bins[i] for i in own_bins),
        compatible=tuple(_restrict_mask(problem.compatible[k], kept) for k in own),
        compatible_bins=tuple(_restrict_mask(bins[k], own_bins) for k in own) if own_bins else (),
        settings=settings,
    )
    return Component(own_problem, own, kept, own_bins)


def _bits(mask: int) -> Iterator[int]:
    """Yield the bits that are set, lowest first."""
    text = f"{mask:b}"[::-1]
    index = text.find("1")
    while index >= 0:
        yield index
        index = text.find("1", index + 1)


def _restrict_mask(mask: int, kept: Sequence[int]) -> int:
    """Return the mask renumbered to the kept bits, which include all that are set."""
    if not mask:
        return 0
    places = {index: place for place, index in enumerate(kept)}
    found = bytearray(len(kept) // 8 + 1)
    for index in _bits(mask):
        place = places[index]
        found[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(found, "little")


def joined(parts: Sequence[Component], packings: Sequence[Packing]) -> Packing:
    """Return the packing of the whole problem, joined from those of its parts."""
    nodes: list[PackedNode] = []
    placements, unplaced = [], []
    for part, packing in zip(parts, packings, strict=True):
        lists: dict[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]] = {}
        for node in packing.nodes:
            for options in (node.options, node.fallback_options):
                if options not in lists:
                    lists[options] = tuple(
                        (part.node_types[i], offering_index) for i, offering_index in options
                    )
            nodes.append(
                PackedNode(
                    node_type=part.node_types[node.node_type],
                    contents=_of_whole(part, node.contents),
                    options=lists[node.options],
                    fallback_options=lists[node.fallback_options],
                )
            )
        placements += [
            (part.bins[i], _of_whole(part, contents)) for i, contents in packing.placements
        ]
        unplaced += [(part.classes[k], count, reason) for k, count, reason in packing.unplaced]
    return Packing(
        nodes=tuple(nodes),
        placements=tuple(sorted(placements)),
        unplaced=tuple(sorted(unplaced)),
        cost_micros_per_hour=sum(packing.cost_micros_per_hour for packing in packings),
        lower_bound_micros_per_hour=sum(
            packing.lower_bound_micros_per_hour for packing in packings
        ),
        candidate="; ".join(
            dict.fromkeys(packing.candidate for packing in packings if packing.candidate)
        ),
        cut_short=any(packing.cut_short for packing in packings),
    )


def _of_whole(part: Component, contents: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((part.classes[k], count) for k, count in contents)
