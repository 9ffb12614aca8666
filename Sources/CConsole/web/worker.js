// The SharedWorker of all tabs of the console: one channel for each database, however many tabs are open.

import { ListenHub } from "./listen-hub.js";

const hub = new ListenHub();

/** Ports answer pings; one that does not is of a tab that is gone. */
const silenceMilliseconds = 40_000;

/** @type {any} */ (self).onconnect = (/** @type {MessageEvent} */ event) => {
  const port = event.ports[0];
  /** @type {Map<number, () => void>} */
  const ends = new Map();
  let heardAt = Date.now();
  const finish = () => {
    for (const stop of ends.values()) stop();
    ends.clear();
    clearInterval(watch);
  };
  const watch = setInterval(
    () => { if (Date.now() - heardAt > silenceMilliseconds) finish(); }, silenceMilliseconds / 2,
  );
  port.onmessage = ({ data }) => {
    heardAt = Date.now();
    switch (data.kind) {
      case "authorization": hub.authorization = data.value; break;
      case "listen":
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
