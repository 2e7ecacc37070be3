import { beforeEach, describe, expect, test, vi } from "vitest";
import { Playback, type Stream } from "./playback";
import { minutes } from "./player";
import type { Message } from "./protocol";
import { Store } from "./store";

class Opened implements Stream {
  onmessage: Stream["onmessage"] = null;
  onerror: Stream["onerror"] = null;
  closed = false;
  private ended = () => {};

  constructor(readonly address: string) {}

  addEventListener(_: "end", heard: () => void): void {
    this.ended = heard;
  }

  close(): void {
    this.closed = true;
  }

  say(message: Message): void {
    this.onmessage!({ data: JSON.stringify(message) } as MessageEvent<string>);
  }

  end(): void {
    this.ended();
  }
}

function at(seconds: number): Message {
  return { kind: "change", recorded: { at: seconds, length: 60, speed: 2 }, now: 1_000_000 };
}

describe("a recording", () => {
  let opened: Opened[];
  let store: Store;
  let playback: Playback;
  const last = () => opened.at(-1)!;

  beforeEach(() => {
    vi.useFakeTimers();
    opened = [];
    store = new Store();
    playback = new Playback(store, () => {}, (address) => {
      opened.push(new Opened(address));
      return last();
    });
    last().say(at(10));
    return () => vi.useRealTimers();
  });

  test("pauses where it is and plays on from there", () => {
    vi.advanceTimersByTime(1000);
    playback.pause();
    expect([playback.state, last().closed]).toEqual(["paused", true]);
    vi.advanceTimersByTime(5000);
    playback.play();
    expect(last().address).toBe("stream?at=12.000&speed=2");
    last().say(at(12));
    expect(playback.state).toBe("live");
  });

  test("shows where it is moved to while it is paused, and stays there", () => {
    playback.pause();
    playback.seek(30);
    expect(last().address).toBe("stream?at=30.000&speed=2");
    last().say(at(30));
    expect([playback.state, last().closed, store.position()]).toEqual(["paused", true, 30]);
  });

  test("goes on faster, at once or when it is played again", () => {
    playback.setSpeed(8);
    expect(last().address).toBe("stream?at=10.000&speed=8");
    last().say(at(10));
    playback.pause();
    playback.setSpeed(4);
    expect(opened).toHaveLength(2);
    playback.play();
    expect(last().address).toBe("stream?at=10.000&speed=4");
  });

  test("plays from its beginning after its end", () => {
    last().end();
    expect(playback.state).toBe("ended");
    playback.play();
    expect(last().address).toBe("stream?at=0.000&speed=2");
  });

  test("goes on where it was when the connection comes back", () => {
    last().onerror!(new Event("error"));
    expect(playback.state).toBe("lost");
    vi.advanceTimersByTime(3000);
    expect(last().address).toBe("stream?at=10.000&speed=2");
  });
});

test("a live cluster is connected to again by the browser", () => {
  const stream = new Opened("");
  const playback = new Playback(new Store(), () => {}, () => stream);
  playback.play();
  playback.seek(3);
  playback.setSpeed(3);
  stream.onerror!(new Event("error"));
  expect([playback.state, stream.closed]).toEqual(["lost", false]);
  stream.say({ kind: "whole" });
  expect(playback.state).toBe("live");
});

test("times are written as players write them", () => {
  expect([minutes(7.9), minutes(187), minutes(3787)]).toEqual(["0:07", "3:07", "1:03:07"]);
});
