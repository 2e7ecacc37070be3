import { describe, expect, test } from "vitest";
import { aspectName, COLUMNS, grouped, inSorting, matching, ownerWord, podsMatching, sortedBy, type Column } from "./arrange";
import { Palette } from "./colours";
import { node } from "./sample";

const SHOP = { workload: "shop/cart", count: 1, cpu: 100, memory: 2 ** 20, names: ["shop/cart-7"] };

describe("the filter", () => {
  const one = node("ip-10-0-0-1", { pods: [SHOP], owner: "general", plan: "20260101t0" });

  test.each(["ip-10", "M5.Large", "general", "1a", "spot", "initialized", "shop", "cart-7", "provisioner", "20260101t0", "cart SPOT", " "])(
    "finds a node by %j",
    (query) => expect(matching(query)(one)).toBe(true),
  );

  test.each(["m5.xlarge", "spot on-demand", "cart-8"])("leaves a node out that has not all of %j", (query) => {
    expect(matching(query)(one)).toBe(false);
  });

  test("finds a coming node by a pod that is promised to it", () => {
    expect(matching("cart-7")(node("a", { pods: [], promised: [SHOP] }))).toBe(true);
  });

  test("finds pods by name and namespace, with their node, and counts those that are not listed", () => {
    const found = podsMatching([node("a"), one], "shop cart", 5);
    expect(found).toEqual({ pods: [{ pod: "shop/cart-7", node: "ip-10-0-0-1" }], count: 1 });
    expect(podsMatching([node("a")], "web", 2)).toEqual({
      pods: [{ pod: "default/web-1", node: "a" }, { pod: "default/web-2", node: "a" }],
      count: 3,
    });
    expect(podsMatching([one], "spot", 5).count).toBe(0);
    expect(podsMatching([one], " ", 5).count).toBe(0);
  });
});

describe("groups", () => {
  test("are in order of their names, those of states from trouble to none", () => {
    const nodes = [node("a", { zone: "us-east-1b" }), node("b"), node("c", { zone: "", phase: "going" })];
    expect(grouped(nodes, "zone").map(({ name, nodes: members }) => [name, members.length])).toEqual([
      ["us-east-1a", 1],
      ["us-east-1b", 1],
      ["zone unknown", 1],
    ]);
    expect(grouped(nodes, "phase").map(({ name }) => name)).toEqual(["going", "initialized"]);
    expect(grouped(nodes, undefined)).toEqual([{ name: "", nodes }]);
  });

  test("call owners what the user's manifests call them", () => {
    const pool = node("a", { owner_kind: "NodePool" });
    expect(ownerWord([pool, node("b", { owner: "", owner_kind: "" })])).toBe("NodePool");
    expect(ownerWord([pool, node("b")])).toBe("Owner");
    expect(ownerWord([])).toBe("Owner");
    expect(aspectName("owner", "NodePool")).toBe("NodePool");
  });

  test("have a colour for each value, and workloads theirs", () => {
    const palette = new Palette();
    const [a, b] = [node("a"), node("b", { zone: "us-east-1b" })];
    const fill = palette.fill("zone");
    expect(fill(a, "x")).toBe(fill(a, "y"));
    expect(fill(a, "x")).not.toBe(fill(b, "x"));
    expect(palette.fill("phase")(a, "x")).not.toBe(palette.fill("phase")(node("c", { phase: "going" }), "x"));
    expect(palette.fill(undefined)(a, "x")).not.toBe(palette.fill(undefined)(a, "y"));
  });
});

describe("the order of the table", () => {
  const low = node("n2", { price: null, pods: [], since: "", type: "m5.2xlarge", zone: "a", owner: "a", capacity_type: "on-demand", phase: "not ready" });
  const high = node("n10", { type: "m5.16xlarge" });

  test.each(COLUMNS.map((column) => [column]))("goes by %s", (column: Column) => {
    const names = (descending: boolean) => inSorting([high, low], { by: column, descending }).map(({ name }) => name);
    expect(names(false)).toEqual(["n2", "n10"]);
    expect(names(true)).toEqual(["n10", "n2"]);
  });

  test("has equal nodes by name", () => {
    expect(inSorting([node("b"), node("a")], { by: "zone", descending: true }).map(({ name }) => name)).toEqual(["a", "b"]);
  });

  test("turns when the same head is clicked again", () => {
    const first = sortedBy({ by: "phase", descending: false }, "price");
    expect(first).toEqual({ by: "price", descending: false });
    expect(sortedBy(first, "price")).toEqual({ by: "price", descending: true });
  });
});
