import { useEffect, useRef } from "preact/hooks";
import { aspectName, ASPECTS, type Aspect } from "./arrange";

interface Props {
  query: string;
  find: (query: string) => void;
  group: Aspect | undefined;
  groupBy: (aspect: Aspect | undefined) => void;
  colour: Aspect | undefined;
  colourBy: (aspect: Aspect | undefined) => void;
  /** What the owners of nodes are called. */
  owner: string;
  /** What the filter leaves, empty without one. */
  found: string;
}

/** Filter, grouping and colours of picture and table. */
export function Toolbar({ query, find, group, groupBy, colour, colourBy, owner, found }: Props) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== "/" || isTyping(event) || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      field.current!.select();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <form class="toolbar" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        ref={field}
        type="search"
        value={query}
        aria-label="Filter nodes and find pods"
        aria-keyshortcuts="/"
        placeholder={`Filter: node, type, ${owner}, zone, state, pod …  ( / )`}
        onInput={(event) => find(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          if (query) find("");
          else event.currentTarget.blur();
        }}
      />
      <AspectSelect name="Group by" none="Nothing" value={group} set={groupBy} owner={owner} />
      <AspectSelect name="Colour by" none="Workload" value={colour} set={colourBy} owner={owner} />
      <p role="status" class="quiet">
        {found}
      </p>
    </form>
  );
}

/** Whether a key is typed into a field, and is no shortcut. */
export function isTyping(event: KeyboardEvent): boolean {
  return event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
}

interface SelectProps {
  name: string;
  none: string;
  value: Aspect | undefined;
  set: (aspect: Aspect | undefined) => void;
  owner: string;
}

function AspectSelect({ name, none, value, set, owner }: SelectProps) {
  return (
    <label>
      {name}
      <select value={value ?? ""} onChange={(event) => set(ASPECTS.find((aspect) => aspect === event.currentTarget.value))}>
        <option value="">{none}</option>
        {ASPECTS.map((aspect) => (
          <option key={aspect} value={aspect}>
            {aspectName(aspect, owner)}
          </option>
        ))}
      </select>
    </label>
  );
}
