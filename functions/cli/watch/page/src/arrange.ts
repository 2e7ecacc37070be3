import { stateOf, sum } from "./format";
import type { NodeView } from "./protocol";

// Which nodes are shown, in which order and groups: pure, for the picture and the table.

/** What nodes are grouped and coloured by. */
export const ASPECTS = ["owner", "zone", "capacity_type", "phase"] as const;
export type Aspect = (typeof ASPECTS)[number];

const PHASES = ["not ready", "going", "launching", "launched", "registered", "initialized"];
const NONE: Record<Aspect, string> = { owner: "no owner", zone: "zone unknown", capacity_type: "capacity type unknown", phase: "" };

export function aspectOf(node: NodeView, aspect: Aspect): string {
  return node[aspect] || NONE[aspect];
}

/** What users call the owners of these nodes. */
export function ownerWord(nodes: Iterable<NodeView>): string {
  const kinds = new Set<string>();
  for (const node of nodes) if (node.owner_kind) kinds.add(node.owner_kind);
  return kinds.size === 1 ? [...kinds][0]! : "Owner";
}

export function aspectName(aspect: Aspect, owner: string): string {
  return { owner, zone: "Zone", capacity_type: "Capacity type", phase: "State" }[aspect];
}

export interface Group {
  name: string;
  nodes: NodeView[];
}

/** The nodes by an aspect, in order of its values; all in one group without a name if it is undefined. */
export function grouped(nodes: NodeView[], aspect: Aspect | undefined): Group[] {
  if (!aspect) return [{ name: "", nodes }];
  const groups = new Map<string, NodeView[]>();
  for (const node of nodes) {
    const name = aspectOf(node, aspect);
    const known = groups.get(name);
    if (known) known.push(node);
    else groups.set(name, [node]);
  }
  const order = (name: string) => (aspect === "phase" ? PHASES.indexOf(name) : 0);
  return [...groups]
    .sort(([a], [b]) => order(a) - order(b) || compare(a, b))
    .map(([name, members]) => ({ name, nodes: members }));
}

const NUMERIC = new Intl.Collator("en", { numeric: true });

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return NUMERIC.compare(String(a), String(b)) || (a < b ? -1 : a > b ? 1 : 0);
}

// --- filter

/** Nodes are replaced when they change, never changed: what is searched in is made once for each. */
const texts = new WeakMap<NodeView, string>();

function textOf(node: NodeView): string {
  let text = texts.get(node);
  if (text === undefined) {
    const { name, instance, type, zone, capacity_type, owner, owner_kind, plan } = node;
    const pods = [...node.pods, ...node.promised].flatMap((share) => [share.workload, ...share.names]);
    text = [name, instance, type, zone, capacity_type, owner, owner_kind, plan, stateOf(node), ...pods].join("\n").toLowerCase();
    texts.set(node, text);
  }
  return text;
}

function words(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether a node has each word of a query: in its own fields or in the names of its pods. */
export function matching(query: string): (node: NodeView) => boolean {
  const all = words(query);
  return (node) => all.every((word) => textOf(node).includes(word));
}

export interface FoundPod {
  pod: string;
  node: string;
}

/** The pods of a node that a query names, by the node: kept until the query or the node is another. */
const podsOf = new WeakMap<NodeView, { query: string; pods: string[] }>();

function named(node: NodeView, query: string): string[] {
  let known = podsOf.get(node);
  if (known?.query !== query) {
    const all = words(query);
    const pods = [...node.pods, ...node.promised].flatMap((share) => share.names);
    known = { query, pods: pods.filter((pod) => all.every((word) => pod.toLowerCase().includes(word))) };
    podsOf.set(node, known);
  }
  return known.pods;
}

/** The first pods whose name or namespace has each word of a query, with their nodes; and how many there are. */
export function podsMatching(nodes: Iterable<NodeView>, query: string, most: number): { pods: FoundPod[]; count: number } {
  const pods: FoundPod[] = [];
  let count = 0;
  if (!words(query).length) return { pods, count };
  for (const node of nodes) {
    const found = named(node, query);
    count += found.length;
    for (const pod of found.slice(0, most - pods.length)) pods.push({ pod, node: node.name });
  }
  return { pods, count };
}

// --- order of the table

export const COLUMNS = ["name", "type", "owner", "zone", "capacity_type", "price", "phase", "pods", "cpu", "memory", "age"] as const;
export type Column = (typeof COLUMNS)[number];

export interface Sorting {
  by: Column;
  descending: boolean;
}

/** The order that clicking a column's head leads to: the other direction if it is sorted by already. */
export function sortedBy(before: Sorting, by: Column): Sorting {
  return { by, descending: before.by === by && !before.descending };
}

function valueOf(node: NodeView, column: Column): string | number {
  switch (column) {
    case "price":
      return node.price ?? -1;
    case "phase":
      return PHASES.indexOf(node.phase);
    case "pods":
      return sum(node.pods, "count");
    case "cpu":
    case "memory":
      return node[column] ? sum(node.pods, column) / node[column] : 0;
    case "age":
      return node.since ? -Date.parse(node.since) : -Infinity;
    default:
      return node[column];
  }
}

/** The nodes in an order that is total: equal ones by name. */
export function inSorting(nodes: NodeView[], { by, descending }: Sorting): NodeView[] {
  const sign = descending ? -1 : 1;
  const keyed = nodes.map((node) => ({ node, value: valueOf(node, by) }));
  keyed.sort((a, b) => sign * compare(a.value, b.value) || compare(a.node.name, b.node.name));
  return keyed.map(({ node }) => node);
}
