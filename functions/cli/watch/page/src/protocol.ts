// What the server sends: functions/cli/watch/view.py, board.py and decision.py say what it means.
// Amounts: cpu in millicores, memory in bytes, prices in micro-dollars per hour.

export type Phase =
  | "launching"
  | "launched"
  | "registered"
  | "initialized"
  | "going"
  | "not ready";

export interface Share {
  workload: string;
  count: number;
  cpu: number;
  memory: number;
  /** Of each pod: namespace/name. */
  names: string[];
}

export interface NodeView {
  name: string;
  instance: string;
  type: string;
  zone: string;
  capacity_type: string;
  owner: string;
  owner_kind: "Provisioner" | "NodePool" | "";
  /** Whether Dovetail launched it. */
  ours: boolean;
  price: number | null;
  cpu: number;
  memory: number;
  room: number;
  phase: Phase;
  waits_for: string;
  reason: string;
  blocked: string;
  since: string;
  pods: Share[];
  promised: Share[];
  plan: string;
}

export interface WaitingView {
  key: string;
  workload: string;
  count: number;
  cpu: number;
  memory: number;
  reason: string;
  names: string[];
  /** What they are nominated to, empty for nothing. */
  node: string;
  since: string;
}

export interface Totals {
  nodes: number;
  owned: number;
  coming: number;
  going: number;
  pods: number;
  waiting: number;
  price: number;
  owned_price: number;
  unpriced: number;
}

export interface Least {
  planned: number;
  bound: number;
  pods: number;
  left_out: number;
}

/** Seconds since 1970; price of all nodes; of Dovetail's; bound; number of nodes. */
export type Point = [number, number, number, number | null, number];

/** Count, instance type, capacity type. */
export type Counted = [number, string, string];

/** What came of a decision: what EC2 launched and what that costs, and its errors (code and text). */
export interface Outcome {
  at: string;
  launched: Counted[];
  cost: number;
  refused: [string, string][];
  ended: boolean;
}

export interface DecisionSummary {
  id: string;
  at: string;
  cause: string;
  cost: number;
  bound: number;
  gap_percent: number;
  /** Whether the bound is known to be near what the pods cost at least. */
  bound_is_close: boolean;
  pods: number;
  remove: string[];
  nodes: Counted[];
  placed: number;
  unplaced: number;
  /** Missing where it was not recorded. */
  outcome?: Outcome | null;
}

/** Instance type, zone, capacity type, price. */
export type Option = [string, string, string, number];

export interface PlannedNode {
  count: number;
  owner: string;
  pods: number;
  cpu_percent: number;
  memory_percent: number;
  shares: Share[];
  options: Option[];
  fallback: Option[];
}

export interface Decision {
  id: string;
  key: string;
  bucket: string;
  at: string;
  cause: string;
  remove: string[];
  cost: number;
  bound: number;
  gap_percent: number;
  /** Whether the bound is known to be near what the pods cost at least. */
  bound_is_close: boolean;
  pods: number;
  placed: { node: string; count: number }[];
  nodes: PlannedNode[];
  unplaced: { reason: string; count: number; names: string[] }[];
  looked_at: {
    types: number;
    offerings: number;
    unavailable: number;
    owners: { name: string; types: number; offerings: number; zones: string[]; reason: string }[];
  };
  why_not_cheaper: string[];
  settings: string[];
  remark: string;
  outcome?: Outcome | null;
}

/** Where in a recording a message is, in seconds since its beginning, and how fast it is played. */
export interface Recorded {
  at: number;
  length: number;
  speed: number;
}

export interface Message {
  kind: "whole" | "change";
  recorded?: Recorded;
  /** Of a recording: when this was recorded, in milliseconds since 1970. */
  now?: number;
  synced?: boolean;
  nodes?: NodeView[];
  gone?: string[];
  waiting?: WaitingView[] | null;
  totals?: Totals;
  cluster?: string;
  least?: Least | null;
  notes?: string[];
  decisions?: DecisionSummary[];
  /** All points, also in a change: those of the day before come later. */
  history?: Point[];
  point?: Point;
  /** When it was opened, in seconds since 1970: points before come from recorded decisions. */
  opened?: number;
}
