"""The picture of fifty nodes can be read: nothing overlaps, nothing is cut off, no text is tiny."""

import re
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from functions.cli.plan.svg_plan import draw_plan
from shared.model.kubernetes.pods import ControllerRef
from shared.model.plan import Plan
from shared.model.resources import Resources
from tests import builders as make

SVG = "{http://www.w3.org/2000/svg}"
# A sans-serif letter is at most about this wide, in parts of its size, in the mean of a line.
LETTER = 0.6
NODES = 50


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float
    told: str = ""

    def overlaps(self, other: "Box") -> bool:
        return (
            self.left < other.right - 0.1
            and other.left < self.right - 0.1
            and self.top < other.bottom - 0.1
            and other.top < self.bottom - 0.1
        )

    def inside(self, other: "Box", slack: float = 0.11) -> bool:
        return (
            self.left >= other.left - slack
            and self.top >= other.top - slack
            and self.right <= other.right + slack
            and self.bottom <= other.bottom + slack
        )


def sizes(root: ET.Element) -> dict[str, float]:
    """Return the size of text by class, of the style sheet."""
    style = next(element.text or "" for element in root.iter(f"{SVG}style"))
    base = float(re.search(r"text\{font:(\d+)px", style)[1])  # type: ignore[index]
    found = dict.fromkeys(re.findall(r"\.([a-z]+)\{", style), base) | {"": base}
    found.update(
        {name: float(size) for name, size in re.findall(r"\.(\w+)\{font-size:(\d+)", style)}
    )
    return found


def text_box(element: ET.Element, size: float) -> Box:
    content = "".join(element.itertext())
    x, y, wide = (
        float(element.get("x", 0)),
        float(element.get("y", 0)),
        len(content) * size * LETTER,
    )
    middle = element.get("class") in ("light", "dark")
    left = x - wide / 2 if middle else x
    return Box(left, y - size * 0.8, left + wide, y + size * 0.25, content)


def rectangle(element: ET.Element) -> Box:
    x, y = float(element.get("x", 0)), float(element.get("y", 0))
    return Box(x, y, x + float(element.get("width", 0)), y + float(element.get("height", 0)))


@pytest.fixture
def picture() -> ET.Element:
    types = ("c6id.metal-48xl", "m5.large", "r7i.16xlarge")
    pods = [
        make.pod(
            f"p{number:03}",
            cpu=(100, 450, 900)[number % 3],
            memory=(1, 2, 3)[number % 2] * make.GIB,
            owner=ControllerRef(
                kind="ReplicaSet", name=f"a-rather-long-name-{number % 30:02}", uid="u"
            ),
        )
        for number in range(NODES * 3)
    ]
    nodes = tuple(
        make.planned(
            *pods[3 * n : 3 * n + 3],
            options=(make.option(12_345_600, name=types[n % 3]),),
            daemon_requests=Resources.of(cpu=100, memory=make.GIB, pods=2),
        )
        for n in range(NODES)
    )
    plan = Plan(
        nodes=nodes, cost_micros_per_hour=617_280_000, lower_bound_micros_per_hour=600_000_000
    )
    return ET.fromstring(draw_plan(make.snapshot(*pods), plan, "Prices: us-east-1, 2025-03-02."))


def rooms(picture: ET.Element) -> list[Box]:
    return [
        rectangle(element)
        for element in picture.iter(f"{SVG}rect")
        if element.get("class") == "room"
    ]


def test_every_node_has_a_square_of_its_own_in_reach_of_the_eye(picture: ET.Element) -> None:
    found = rooms(picture)
    assert len(found) == NODES
    assert not any(a.overlaps(b) for a, b in combinations(found, 2))
    assert all(box.right - box.left >= 120 for box in found)
    assert all(box.right - box.left == box.bottom - box.top for box in found)
    assert float(picture.get("width", 0)) <= 1920


def test_what_fills_a_node_stays_inside_it(picture: ET.Element) -> None:
    for group in picture.findall(f"{SVG}g"):
        room = next(
            rectangle(element) for element in group.iter(f"{SVG}rect") if element.get("class")
        )
        blocks = [
            rectangle(element)
            for element in group.iter(f"{SVG}rect")
            if element.get("class") != "room"
        ]
        assert blocks
        assert all(block.inside(room) for block in blocks)
        solid = [
            rectangle(element)
            for element in group.iter(f"{SVG}rect")
            if element.get("class") not in ("room", "band")
        ]
        assert not any(a.overlaps(b) for a, b in combinations(solid, 2))


def test_texts_are_large_enough_and_do_not_run_into_each_other(picture: ET.Element) -> None:
    size_of = sizes(picture)
    assert min(size_of.values()) >= 10
    boxes = [
        text_box(element, size_of[element.get("class") or ""])
        for element in picture.iter(f"{SVG}text")
        if element.get("class") not in ("light", "dark")
    ]
    whole = Box(0, 0, float(picture.get("width", 0)), float(picture.get("height", 0)))
    for box in boxes:
        assert box.inside(whole), box.told
    for box, other in combinations(boxes, 2):
        assert not box.overlaps(other), (box.told, other.told)


def test_numbers_in_blocks_fit_their_block(picture: ET.Element) -> None:
    size_of = sizes(picture)
    for group in picture.iter(f"{SVG}g"):
        labels = [element for element in group if element.get("class") in ("light", "dark")]
        for label in labels:
            place = text_box(label, size_of["light"])
            around = [
                rectangle(element)
                for group_of in picture.iter(f"{SVG}g")
                if group_of.get("fill")
                for element in group_of
                if element.tag == f"{SVG}rect" and element.get("class") is None
            ]
            assert any(place.inside(box, 1.5) for box in around), place
