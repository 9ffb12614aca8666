// Latencies that a user of a page notices.

import { listening, write } from "./cases/tabs.js";
import { Context, report } from "./harness.js";

const connects = 30;
const writes = 200;

/// The time on a clock that all tabs share.
const now = () => performance.timeOrigin + performance.now();

async function connectToFirstSnapshot() {
  const times = [];
  for (let round = 0; round < connects + 3; round++) {
    const t = new Context();
    const started = now();
    await new Promise((resolve, reject) => {
      t.closers.push(t.f.onSnapshot(t.doc("nothing"), { includeMetadataChanges: true }, (snapshot) => {
        if (!snapshot.metadata.fromCache) resolve();
      }, reject));
    });
    times.push(now() - started);
    await t.close();
  }
  // The first ones compile the SDK and warm up the server.
  return times.slice(3);
}

async function writeToOtherTab() {
  const t = new Context();
  const tab = await t.tab();
  await tab.run((f, db, path) => new Promise((resolve) => {
    window.seen = () => {};
    f.onSnapshot(f.doc(db, path, "a"), (snapshot) => {
      window.seen(snapshot.get("n"), performance.timeOrigin + performance.now());
      resolve();
    });
  }), t.id);
  const times = [];
  for (let n = 1; n <= writes + 10; n++) {
    const started = now();
    const seen = new Promise((resolve) => {
      tab.window.seen = (value, time) => value === n && resolve(time);
    });
    const written = t.f.setDoc(t.doc("a"), { n });
    times.push((await seen) - started);
    await written;
  }
  await t.close();
  return times.slice(10);
}

/// The time until all tabs have it, for tabs that take turns in writing; the first writes are at the same time.
async function writeToAll(count) {
  const t = new Context();
  const tabs = await listening(t, count);
  const times = await Promise.all(tabs.map((tab, n) => write(t, tabs, tab, n)));
  for (let n = count; n < 10 * count; n++) times.push(await write(t, tabs, tabs[n % count], n));
  await t.close();
  return times;
}

async function measureOne(name, body) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("takes too long")), 120_000));
  const times = (await Promise.race([body(), late])).sort((left, right) => left - right);
  const at = (part) => Number(times[Math.min(Math.floor(times.length * part), times.length - 1)].toFixed(2));
  await report({ kind: "latency", name, count: times.length, median: at(0.5), p90: at(0.9), max: at(1) });
}

export async function measure() {
  for (const [name, body] of [
    ["connect to the first snapshot", connectToFirstSnapshot], ["write to another tab", writeToOtherTab],
    ["write to all of three tabs that write", () => writeToAll(3)],
    ["write to all of five tabs that write", () => writeToAll(5)],
  ]) {
    await measureOne(name, body).catch((error) => report({ kind: "error", text: `${name}: ${error?.message ?? error}` }));
  }
}
