// Several tabs of one browser, which has six connections to a server that speaks HTTP/1.1.

import { check, until } from "../harness.js";

/// Longer than a write waits for a connection, shorter than a page's pause after a failure and a server's keep-alive.
const milliseconds = 4_000;

/// The time on a clock that all tabs share.
export const now = () => performance.timeOrigin + performance.now();

/// Tabs that listen to the case's collection.
export async function listening(t, count) {
  const tabs = [];
  for (let n = 0; n < count; n++) tabs.push(await t.tab());
  for (const tab of tabs) {
    await tab.run((f, db, path) => new Promise((resolve, reject) => {
      window.seen = {};
      f.onSnapshot(f.collection(db, path), { includeMetadataChanges: true }, (snapshot) => {
        const time = performance.timeOrigin + performance.now();
        for (const document of snapshot.docs) {
          if (!document.metadata.hasPendingWrites) window.seen[document.get("n")] ??= time;
        }
        if (!snapshot.metadata.fromCache) resolve();
      }, reject);
    }), t.id);
  }
  return tabs;
}

/// Writes in one tab.
///
/// - Returns: the milliseconds until all tabs have it from the server.
export async function write(t, tabs, writer, n) {
  const started = now();
  await writer.run(async (f, db, path, id, n) => void (await f.setDoc(f.doc(db, path, id), { n })),
    t.id, `d${tabs.indexOf(writer)}`, n);
  await until(`${n} is seen in ${tabs.length} tabs`, () => tabs.every((tab) => tab.window.seen[n]), 130_000);
  return Math.max(...tabs.map((tab) => tab.window.seen[n])) - started;
}

export const tabs = [
  ...[3, 5].map((count) => [`${count} tabs that listen and write`, async (t) => {
    const tabs = await listening(t, count);
    const times = [];
    // At once, which opens all streams; then one after the other.
    times.push(...await Promise.all(tabs.map((tab, n) => write(t, tabs, tab, n))));
    for (let n = count; n < 5 * count; n++) times.push(await write(t, tabs, tabs[n % count], n));
    check(Math.max(...times) < milliseconds, `each write is seen within ${milliseconds} ms: ${times.map(Math.round)}`);
  }]),
  ["eight tabs that listen, one writes", async (t) => {
    const tabs = await listening(t, 8);
    const times = [];
    for (let n = 0; n < 8; n++) times.push(await write(t, tabs, tabs[7 - n % 2], n));
    check(Math.max(...times) < milliseconds, `each write is seen within ${milliseconds} ms: ${times.map(Math.round)}`);
  }],
];
