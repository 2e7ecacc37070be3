import { expect, test } from "vitest";
import { Colours, DAEMONS, legend } from "./colours";
import { age, announcement, bigDollars, cores, counted, described, dollars, gap, gib, share, stateOf, hostOf, launchedBy } from "./format";
import { came, planned } from "./panels";
import { node, totals } from "./sample";

test("amounts have the units that people read", () => {
  expect(dollars(1_234_567_890)).toBe("$1,234.5679");
  expect(bigDollars(734_900)).toBe("$0.7349");
  expect(bigDollars(123_456_789)).toBe("$123.46");
  expect([cores(1900), gib(7.5 * 2 ** 30), share(1, 3), share(1, 0)]).toEqual(["1.9", "7.5 GiB", "33 %", "–"]);
  expect([counted(1, "pod"), counted(2000, "pod")]).toEqual(["1 pod", "2,000 pods"]);
});

test("ages are spans", () => {
  const now = Date.parse("2026-01-01T03:20:05Z");
  expect(age("2026-01-01T03:20:00Z", now)).toBe("5 s");
  expect(age("2026-01-01T03:00:00Z", now)).toBe("20 min");
  expect(age("2026-01-01T00:00:00Z", now)).toBe("3 h 20 min");
  expect(age("2025-12-20T00:00:00Z", now)).toBe("12 d");
  expect(age("2026-01-01T04:00:00Z", now)).toBe("0 s");
  expect(age("", now)).toBe("");
});

test("a node that EC2 has not launched is none of a decision's nodes", () => {
  const nodes = [node("a"), node("b", { phase: "launching" }), node("c", { plan: "p2" })];
  expect(launchedBy("p1", nodes).map(({ name }) => name)).toEqual(["a"]);
});

test("a node is described in words", () => {
  expect(stateOf(node("a", { phase: "launched", waits_for: "the kubelet to be Ready" }))).toBe("launched, waits for the kubelet to be Ready");
  expect(stateOf(node("a", { phase: "going", reason: "empty", blocked: "by budget web" }))).toBe("going: empty; held: by budget web");
  expect(stateOf(node("a", { blocked: "consolidation: too young" }))).toBe("initialized; kept: consolidation: too young");
  expect(described(node("a"))).toBe("a, m5.large spot us-east-1a, initialized, 3 pods, cpu 75 %, memory 25 %, $0.0320 an hour");
  expect(described(node("a", { price: null }))).toContain("price unknown");
});

test("only what changed is read out", () => {
  const before = totals();
  expect(announcement(before, totals())).toBe("");
  expect(announcement(before, totals({ price: 40_000 }))).toBe("");
  expect(announcement(before, totals({ nodes: 2, coming: 1, going: 1, waiting: 5, price: 64_000 }))).toBe(
    "2 nodes, 1 coming, 1 going, 5 pods waiting, $0.06 an hour",
  );
});

test("a workload keeps its colour, and daemons are grey", () => {
  const colours = new Colours();
  const first = colours.of("a");
  expect(colours.of("b")).not.toBe(first);
  expect(colours.of("a")).toBe(first);
  expect(colours.of(DAEMONS)).toBe("#8b95a5");
});

test("the legend has the largest workload first", () => {
  const small = node("b", { pods: [{ workload: "z", count: 1, cpu: 1, memory: 1, names: ["z-1"] }] });
  expect(legend([small, node("a")])).toEqual([
    ["default/web", 3],
    ["z", 1],
  ]);
});

test("a gap is told only where the bound is close", () => {
  expect(gap({ bound: 100, gap_percent: 0.374, bound_is_close: true })).toBe("gap 0.37 %");
  expect(gap({ bound: 100, gap_percent: 28, bound_is_close: false })).toBe("at most 28.00 % above what is proved");
  expect(gap({ bound: 0, gap_percent: 0, bound_is_close: false })).toBe("nothing proved: nodes that are there may have room");
});

test("a decision says in a line what it did", () => {
  const decision = { id: "p", at: "", cause: "", cost: 0, bound: 0, gap_percent: 0, bound_is_close: true, pods: 0, remove: [], placed: 0, unplaced: 0 };
  expect(planned({ ...decision, nodes: [] })).toBe("plans no node");
  expect(planned({ ...decision, nodes: [[2, "m5.large", "spot"], [1, "c5.large", "spot"], [1, "r5.large", "spot"]] })).toBe(
    "plans 2 × m5.large spot, 1 × c5.large spot, 1 more kind",
  );
  expect(planned({ ...decision, nodes: [], remove: ["n1"], placed: 2, unplaced: 1 })).toBe(
    "1 node removed, 2 pods on nodes that are there, no place for 1 pod",
  );
});

test("what came of a decision is told once it is over", () => {
  const nodes: [number, string, string][] = [[2, "m5.large", "spot"]];
  const outcome = { at: "", launched: [[2, "m5.large", "on-demand"]] as [number, string, string][], cost: 9, refused: [], ended: true };
  expect(came({ nodes })).toBe("");
  expect(came({ nodes, outcome: { ...outcome, ended: false } })).toBe("");
  expect(came({ nodes, outcome })).toBe("launched 2 × m5.large on-demand");
  expect(came({ nodes, outcome: { ...outcome, launched: [[1, "m5.large", "spot"]] } })).toBe("launched 1 × m5.large spot; 1 not");
  expect(came({ nodes, outcome: { ...outcome, launched: [], refused: [["InvalidParameterValue", "x"]] } })).toBe(
    "launched no node of 2: EC2 refused: InvalidParameterValue",
  );
});

test("the name of a node of EC2 is shown without its domain", () => {
  expect(["ip-10-0-0-4.ec2.internal", "i-0a.eu-west-1.compute.internal", "node.example.com", "n1"].map(hostOf)).toEqual([
    "ip-10-0-0-4",
    "i-0a",
    "node.example.com",
    "n1",
  ]);
});
