import "uplot/dist/uPlot.min.css";
import { render } from "preact";
import { App } from "./app";
import { Playback } from "./playback";
import { Store } from "./store";

const store = new Store();
const listeners = new Set<() => void>();
const playback = new Playback(
  store,
  () => {
    for (const changed of listeners) changed();
  },
  (address) => new EventSource(address),
);

render(
  <App
    store={store}
    playback={playback}
    listen={(changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    }}
  />,
  document.getElementById("app")!,
);
