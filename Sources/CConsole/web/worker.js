// The SharedWorker of all tabs of the console: one channel for each database, however many tabs are open.

import { ListenHub } from "./listen-hub.js";

const hub = new ListenHub();

/**
 * Tabs send pings. One that has not for so long is gone or asleep, so its listeners end. When it wakes up it asks
 * again. Browsers let the timers of a tab in the background run once a minute.
 */
const silenceMilliseconds = 150_000;

/** @type {any} */ (self).onconnect = (/** @type {MessageEvent} */ event) => {
  const port = event.ports[0];
  /** @type {Map<number, () => void>} */
  const ends = new Map();
  let heardAt = Date.now();
  /** Null while the tab is taken to be gone. */
  let watch = /** @type {number|null} */ (null);
  const finish = () => {
    for (const stop of ends.values()) stop();
    ends.clear();
    clearInterval(watch ?? undefined);
    watch = null;
  };
  const begin = () => {
    watch = setInterval(
      () => { if (Date.now() - heardAt > silenceMilliseconds) finish(); }, silenceMilliseconds / 2,
    );
  };
  begin();
  port.onmessage = ({ data }) => {
    heardAt = Date.now();
    if (watch === null && data.kind !== "close") {
      begin();
      port.postMessage({ kind: "forgotten" });
    }
    switch (data.kind) {
      case "authorization": hub.authorization = data.value; break;
      case "listen":
        ends.get(data.id)?.();
        ends.set(data.id, hub.listen(data.database, data.request, {
          snapshot: (snapshot) => port.postMessage({ id: data.id, snapshot }),
          failed: (error) => port.postMessage({ id: data.id, error }),
        }));
        break;
      case "end":
        ends.get(data.id)?.();
        ends.delete(data.id);
        break;
      case "close": finish(); break;
    }
  };
};
