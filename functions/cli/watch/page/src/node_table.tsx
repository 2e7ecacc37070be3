import { COLUMNS, grouped, inSorting, sortedBy, type Aspect, type Column, type Sorting } from "./arrange";
import type { Palette } from "./colours";
import { age, dollars, hostOf, share, stateOf, sum } from "./format";
import { memo } from "./memo";
import { amounts } from "./picture";
import type { NodeView } from "./protocol";

const NUMBERS = new Set<Column>(["price", "pods", "cpu", "memory", "age"]);

function headOf(column: Column, owner: string): string {
  return {
    name: "Node",
    type: "Type",
    owner,
    zone: "Zone",
    capacity_type: "Capacity type",
    price: "$/h",
    phase: "State",
    pods: "Pods",
    cpu: "CPU",
    memory: "Memory",
    age: "Age",
  }[column];
}

interface Props {
  nodes: NodeView[];
  /** What the owners of nodes are called. */
  owner: string;
  now: number;
  sorting: Sorting;
  sort: (sorting: Sorting) => void;
  group: Aspect | undefined;
  colour: Aspect | undefined;
  palette: Palette;
  chosen: string | undefined;
  choose: (name: string) => void;
}

/** Nodes as a table: what the picture shows, for keyboard and screen reader. Its look is no table's, so it says its roles. */
export function NodeTable({ nodes, owner, now, sorting, sort, group, colour, palette, chosen, choose }: Props) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Nodes">
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {COLUMNS.map((column) => (
              <th
                key={column}
                role="columnheader"
                scope="col"
                class={NUMBERS.has(column) ? "number" : ""}
                aria-sort={sorting.by !== column ? undefined : sorting.descending ? "descending" : "ascending"}
              >
                <button type="button" onClick={() => sort(sortedBy(sorting, column))}>
                  {headOf(column, owner)}
                  <span aria-hidden="true">{sorting.by !== column ? "" : sorting.descending ? " ▾" : " ▴"}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        {grouped(nodes, group).map(({ name, nodes: members }) => (
          <tbody key={name} role="rowgroup">
            {name && (
              <tr role="row" class="group">
                <th role="rowheader" scope="rowgroup" colSpan={COLUMNS.length}>
                  {name} <span>{amounts(members)}</span>
                </th>
              </tr>
            )}
            {inSorting(members, sorting).map((node) => (
              <Row
                key={node.name}
                node={node}
                old={age(node.since, now)}
                colour={colour && palette.of(node, colour)}
                chosen={node.name === chosen}
                choose={choose}
              />
            ))}
          </tbody>
        ))}
      </table>
      {!nodes.length && <p class="quiet">No node matches.</p>}
    </div>
  );
}

interface RowProps {
  node: NodeView;
  old: string;
  colour: string | undefined;
  chosen: boolean;
  choose: (name: string) => void;
}

const Row = memo(
  ({ node, old, colour, chosen, choose }: RowProps) => (
    <tr role="row" class={chosen ? "chosen" : ""}>
      <th role="rowheader" scope="row">
        {colour && <i style={{ background: colour }} />}
        <button type="button" class="link" aria-label={node.name} title={node.name} onClick={() => choose(node.name)}>
          {hostOf(node.name)}
        </button>
      </th>
      <td role="cell">{node.type}</td>
      <td role="cell">{node.owner}</td>
      <td role="cell">{node.zone}</td>
      <td role="cell">{node.capacity_type}</td>
      <td role="cell" class="number">{node.price === null ? "?" : dollars(node.price).slice(1)}</td>
      <td role="cell" class={`state ${node.phase.replace(" ", "-")}`}>{stateOf(node)}</td>
      <td role="cell" class="number">{`${sum(node.pods, "count")}/${node.room}`}</td>
      <td role="cell" class="number">{share(sum(node.pods, "cpu"), node.cpu)}</td>
      <td role="cell" class="number">{share(sum(node.pods, "memory"), node.memory)}</td>
      <td role="cell" class="number">{old}</td>
    </tr>
  ),
  (before, after) =>
    before.node === after.node && before.old === after.old && before.colour === after.colour && before.chosen === after.chosen,
);
