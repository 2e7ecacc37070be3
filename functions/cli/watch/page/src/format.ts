import type { DecisionSummary, NodeView, Share, Totals } from "./protocol";

const GIB = 2 ** 30;

export function dollars(micros: number, digits = 4): string {
  const amount = (micros / 1_000_000).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `$${amount}`;
}

/** Dollars as the large figures show them: no more digits than can be told apart. */
export function bigDollars(micros: number): string {
  return dollars(micros, micros >= 100_000_000 ? 2 : micros >= 10_000_000 ? 3 : 4);
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The nodes that a decision launched and that are still there; without those that have no instance yet and may never get one. */
export function launchedBy(plan: string, nodes: Iterable<NodeView>): NodeView[] {
  return [...nodes].filter((node) => node.plan === plan && node.phase !== "launching");
}

export function cores(millis: number): string {
  return `${Math.round(millis / 10) / 100}`;
}

export function gib(bytes: number): string {
  return `${Math.round((bytes / GIB) * 10) / 10} GiB`;
}

export function share(used: number, room: number): string {
  return room ? `${Math.round((100 * used) / room)} %` : "–";
}

export function sum(shares: Share[], of: "count" | "cpu" | "memory"): number {
  return shares.reduce((total, each) => total + each[of], 0);
}

/** Since when, as a span: `12 s`, `4 min`, `3 h 20 min`, `5 d`. */
export function age(since: string, now: number): string {
  if (!since) return "";
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString("en-GB");
}

/** How far the price of a decision may be above the cheapest possible. */
export function gap(decision: Pick<DecisionSummary, "bound" | "gap_percent" | "bound_is_close">): string {
  if (!decision.bound) return "nothing proved: nodes that are there may have room";
  const percent = `${decision.gap_percent.toFixed(2)} %`;
  return decision.bound_is_close ? `gap ${percent}` : `at most ${percent} above what is proved`;
}

/** What a node does, in one line. */
export function stateOf(node: NodeView): string {
  const held = node.blocked ? `; held: ${node.blocked}` : "";
  if (node.phase === "going") return `going: ${node.reason}${held}`;
  if (node.waits_for) return `${node.phase}, waits for ${node.waits_for}`;
  return node.blocked ? `${node.phase}; kept: ${node.blocked}` : node.phase;
}

/** A node in words, for screen readers and tooltips. */
export function described(node: NodeView): string {
  const pods = sum(node.pods, "count");
  const price = node.price === null ? "price unknown" : `${dollars(node.price)} an hour`;
  return [
    node.name,
    [node.type, node.capacity_type, node.zone].filter(Boolean).join(" "),
    stateOf(node),
    counted(pods, "pod"),
    `cpu ${share(sum(node.pods, "cpu"), node.cpu)}`,
    `memory ${share(sum(node.pods, "memory"), node.memory)}`,
    price,
  ].join(", ");
}

/** What to read out when figures change; empty for nothing worth it. */
export function announcement(before: Totals, after: Totals): string {
  const said: string[] = [];
  if (before.nodes !== after.nodes) said.push(counted(after.nodes, "node"));
  if (before.coming !== after.coming) said.push(`${after.coming} coming`);
  if (before.going !== after.going) said.push(`${after.going} going`);
  if (before.waiting !== after.waiting) said.push(`${counted(after.waiting, "pod")} waiting`);
  if (said.length && before.price !== after.price) said.push(`${dollars(after.price, 2)} an hour`);
  return said.join(", ");
}

/** A node's name without the domain that all nodes of EC2 have. */
export function hostOf(name: string): string {
  return name.endsWith("internal") ? name.slice(0, name.indexOf(".")) : name;
}
