"""Values for laws: small worlds full of collisions, with a pool of values known to be nasty."""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.requirements import KUBERNETES_OPERATORS, Operator, Requirement, Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests import builders as make

# Numbers that are equal and written differently, numbers at the edge of 64 bits, and texts that
# look like numbers and are none.
NASTY_VALUES: Final = (
    *("", "a", "b", "true", "-", "--1", "1.5", "1e3", " 1", "\u0663", "x" * 63, "9" * 63),
    *("0", "00", "-0", "1", "01", "2", "3", "4", "5", "05", "10", "-3"),
    *(str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1), "0" * 40 + "5"),
)
NASTY_BOUNDS: Final = (-(2**63), -4, -1, 0, 1, 2, 3, 4, 5, 6, 10, 2**63 - 1)
NASTY_QUANTITIES: Final = (
    *("0", "1", "+1", "-1", "1.", ".5", "0.1", "100m", "0.1m", "1k", "1Ki", "1.5Gi", "2E", "1Ei"),
    *("1e3", "1E3", "12e-1", "1n", "3u", "9" * 30),
)
values = st.sampled_from(NASTY_VALUES)


@st.composite
def requirement(draw: st.DrawFn, key: str = "k") -> Requirement:
    """A requirement as a manifest can say it, or the intersection of a few."""
    met = Requirement(key=key, absent=True)
    for _ in range(draw(st.integers(1, 3))):
        operator = draw(st.sampled_from(KUBERNETES_OPERATORS))
        match operator:
            case Operator.IN | Operator.NOT_IN:
                given = draw(st.lists(values, min_size=1, max_size=4))
            case Operator.GT | Operator.LT:
                given = [str(draw(st.sampled_from(NASTY_BOUNDS)))]
            case _:
                given = []
        met = met.intersect(Requirement.parse(key, operator, given))
    return met


requirement_sets = st.lists(st.sampled_from(("k", "l", "m")).flatmap(requirement), max_size=4).map(
    Requirements.of
)
label_sets = st.dictionaries(st.sampled_from(("k", "l", "m", "n")), values, max_size=4)
amounts = st.dictionaries(
    st.sampled_from(("cpu", "memory", "pods", "nvidia.com/gpu")), st.integers(-5, 2**40), max_size=4
).map(Resources.from_mapping)
effects = st.sampled_from(list(Effect))
taints = st.builds(
    Taint, key=st.sampled_from(("a", "b")), value=st.sampled_from(("", "x", "y")), effect=effects
)
tolerations = st.builds(
    Toleration,
    key=st.sampled_from(("", "a", "b")),
    operator=st.sampled_from(("Equal", "Exists")),
    value=st.sampled_from(("", "x", "y")),
    effect=st.none() | effects,
)

# --- whole clusters, small enough to be solved in milliseconds

_SELECTORS: Final = (
    Requirements(),
    make.needs(keys.ZONE, "In", make.ZONES[1]),
    make.needs(keys.INSTANCE_TYPE, "NotIn", "m5.large"),
    make.needs(keys.ARCH, "In", "arm64"),
    make.needs("team", "In", "red"),
    make.needs("team", "In", "blue"),
)
_APPS: Final = ("web", "db")
_RULES: Final[Sequence[dict[str, Any]]] = (
    {},
    {},
    {},
    {"spreads": (make.spread(),)},
    {"spreads": (make.spread(keys.HOSTNAME),)},
    {"spreads": (make.spread(keys.HOSTNAME, 2, hard=False),)},
    {"anti_affinity": (make.affinity(),)},
    {"anti_affinity": (make.affinity(selector=make.selector(app="db")),)},
    {"anti_affinity": (make.affinity(keys.ZONE),)},
    {"affinity": (make.affinity(keys.ZONE),)},
    {"affinity": (make.affinity(),)},
    {"host_ports": (("0.0.0.0", "TCP", 80),)},
    {"refusals": ("it asks for the impossible",)},
)
_TOLERATIONS: Final = ((), (Toleration(key="only", operator="Exists"),))


@st.composite
def pending_pods(draw: st.DrawFn, most: int = 6) -> tuple[Pod, ...]:
    """Pods of a few workloads that wait for capacity."""
    found: list[Pod] = []
    for number in range(draw(st.integers(0, most))):
        template = make.scheduling(
            cpu=draw(st.sampled_from((100, 500, 1500, 3000, 9000))),
            memory=draw(st.sampled_from((64, 1024, 6000))) * make.MIB,
            node_selector=draw(st.sampled_from(_SELECTORS)),
            tolerations=draw(st.sampled_from(_TOLERATIONS)),
            priority=draw(st.sampled_from((0, 0, 100))),
            **draw(st.sampled_from(_RULES)),
        )
        found.extend(
            make.pod(
                f"w{number}-{replica}",
                namespace=draw(st.sampled_from(("default", "shop"))),
                labels={"app": draw(st.sampled_from(_APPS))},
                scheduling=template,
            )
            for replica in range(draw(st.integers(1, 3)))
        )
    return tuple(found)


_PROVISIONERS: Final = (
    (make.provisioner(),),
    (),
    (make.provisioner(also=make.needs("team", "In", "red", "blue")),),
    (
        make.provisioner("costly", weight=50, limits=Resources.of(cpu=4000)),
        make.provisioner(taints=(Taint(key="only", effect=Effect.NO_SCHEDULE),)),
        make.provisioner("arm", requirements=make.needs(keys.ARCH, "In", "arm64")),
    ),
    (
        make.provisioner("a", limits=Resources.of(cpu=2000, memory=20 * make.GIB)),
        make.provisioner("b", limits=Resources.of(cpu=6000)),
        make.provisioner("c", also=make.needs(keys.ZONE, "In", make.ZONES[1])),
        make.provisioner("paused", weight=100, paused=True),
    ),
)


@st.composite
def snapshots(draw: st.DrawFn) -> ClusterSnapshot:
    """A cluster with some nodes, some of them in flight, and pods that wait."""
    pending = draw(pending_pods())
    provisioners = draw(st.sampled_from(_PROVISIONERS))
    nodes, bound, slots = [], [], []
    for number in range(draw(st.integers(0, 2))):
        name = f"n{number}"
        label = {keys.ZONE: draw(st.sampled_from(make.ZONES)), keys.HOSTNAME: name}
        one = make.node(name, labels={**make.node().labels, **label})
        nodes.append(replace(one, unschedulable=draw(st.booleans()) and draw(st.booleans())))
        rules = draw(st.sampled_from(_RULES))
        bound.append(
            make.pod(
                f"bound{number}",
                node_name=name,
                labels={"app": draw(st.sampled_from(_APPS))},
                **{"cpu": draw(st.sampled_from((100, 1800, 2500))), **rules},
            )
        )
    if draw(st.booleans()):
        promised = tuple(make.ref(pod) for pod in pending[:1])
        slots.append(make.slot(pods=draw(st.sampled_from(((), promised)))))
    taken = {provisioner.name for provisioner in provisioners}
    out = draw(st.sampled_from(((), tuple(make.offering(zone=zone) for zone in make.ZONES))))
    return make.snapshot(
        *pending,
        provisioners=provisioners,
        nodes=tuple(nodes),
        bound=tuple(bound),
        slots=tuple(slots),
        daemonsets=draw(st.sampled_from(((), (make.daemonset(),)))),
        sites=tuple(make.site(name) for name in sorted(taken)),
        promised=frozenset(pod.uid for pod in draw(st.sampled_from(((), pending[-1:])))),
        unavailable=frozenset(out),
    )
