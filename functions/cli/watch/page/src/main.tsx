import "uplot/dist/uPlot.min.css";
import { render } from "preact";
import { App } from "./app";
import type { Message } from "./protocol";
import { Store } from "./store";

const store = new Store();
const listeners = new Set<() => void>();
let state: "live" | "lost" | "ended" = "live";

const stream = new EventSource("stream");
stream.onmessage = (event: MessageEvent<string>) => {
  state = "live";
  store.apply(JSON.parse(event.data) as Message);
  tell();
};
stream.onerror = () => {
  // The browser connects again by itself, and is sent the whole first.
  if (state !== "ended") state = "lost";
  tell();
};
stream.addEventListener("end", () => {
  state = "ended";
  stream.close();
  tell();
});

function tell(): void {
  for (const changed of listeners) changed();
}

render(
  <App
    store={store}
    listen={(changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    }}
    connected={() => state}
  />,
  document.getElementById("app")!,
);
