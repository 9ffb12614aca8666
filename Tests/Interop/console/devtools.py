"""A headless chromium that is driven over the DevTools protocol, through a pair of pipes: no port, no other package."""

import base64
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "web"))
import browser  # noqa: E402

WAIT_SECONDS = 60


class PageError(AssertionError):
    """What a page did was wrong: an error in its console, or a condition that did not come."""


class Chromium:
    """One process. Messages are JSON with a zero byte after each."""

    def __init__(self, path, scratch):
        flags = [*browser.FLAGS, f"--user-data-dir={scratch}/profile", "--remote-debugging-pipe", "--hide-scrollbars"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
        self.log = open(f"{scratch}/chromium.log", "w")
        self.process = subprocess.Popen(
            ["bash", "-c", script, path, *flags, "about:blank"], stdout=self.log, stderr=self.log,
            pass_fds=(to_read, from_write), start_new_session=True)
        os.close(to_read)
        os.close(from_write)
        self.scratch = scratch
        self.number = 0
        self.answers = {}
        self.arrived = threading.Condition()
        self.listeners = {}
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        rest = b""
        while True:
            try:
                part = os.read(self.from_read, 1 << 16)
            except OSError:
                return
            if not part:
                return
            *messages, rest = (rest + part).split(b"\0")
            for message in messages:
                self.take(json.loads(message))

    def take(self, message):
        if "id" in message:
            with self.arrived:
                self.answers[message["id"]] = message
                self.arrived.notify_all()
        else:
            listener = self.listeners.get(message.get("sessionId"))
            if listener:
                listener(message["method"], message["params"])

    def send(self, method, parameters=None, session=None):
        with self.arrived:
            self.number += 1
            number = self.number
        message = {"id": number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        with self.arrived:
            if not self.arrived.wait_for(lambda: number in self.answers, WAIT_SECONDS):
                raise PageError(f"chromium did not answer {method}")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()
        shutil.rmtree(f"{self.scratch}/profile", ignore_errors=True)


class Page:
    """One tab. An error in its console, an exception or a violation of the policy fails the test."""

    def __init__(self, chromium, width=1280, height=800):
        self.chromium = chromium
        target = chromium.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.target = target
        self.session = chromium.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.faults = []
        self.allowed = []
        self.requests = []
        self.events = queue.Queue()
        chromium.listeners[self.session] = self.event
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.send(f"{domain}.enable")
        self.size(width, height)

    def send(self, method, parameters=None):
        return self.chromium.send(method, parameters, self.session)

    def size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def theme(self, name):
        self.send("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def event(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.faults.append(" ".join(str(argument.get("value", argument.get("description"))) for argument in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.faults.append(parameters["entry"]["text"] + " " + parameters["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def check(self):
        """Fails if anything has gone wrong since the last check."""
        faults = [fault for fault in self.faults if not any(part in fault for part in self.allowed)]
        self.faults.clear()
        if faults:
            raise PageError("the page has errors: " + "; ".join(faults))

    def open(self, url):
        self.send("Page.navigate", {"url": url})

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        result = self.send("Runtime.evaluate", {"expression": script, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in result:
            raise PageError(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def until(self, condition, what=None, seconds=WAIT_SECONDS):
        """Waits until an expression is true; its value."""
        end = time.monotonic() + seconds
        while True:
            try:
                value = self.run(condition)
            except PageError as error:
                value, what = None, f"{what}: {error}"
            if value:
                return value
            if time.monotonic() > end:
                text = self.run("document.body.innerText.slice(0, 1500)")
                raise PageError(f"{what or condition} did not come; faults {self.faults}; the page shows: {text}")
            time.sleep(0.03)

    def text(self, part):
        """Waits for a text on the page."""
        self.until(f"document.body.innerText.includes({json.dumps(part)})", f"the text {part!r}")

    def click(self, selector, text=None):
        """Clicks the first element of a selector, with a text in it, at its place on the screen."""
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})].filter(e => {json.dumps(text)} === null || e.innerText.includes({json.dumps(text)})"
            f" || e.getAttribute('aria-label') === {json.dumps(text)}).find(e => e.getClientRects().length)")
        # A page that is still being filled moves what is clicked: it must stand still for two frames, with nothing over it.
        still = (
            f"(async () => {{ const find = () => {find}; const e = find(); if (!e) return null;"
            " e.scrollIntoView({block: 'nearest', inline: 'nearest'});"
            " const middle = () => { const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2}; };"
            " const place = middle(); await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));"
            " const later = middle(), top = document.elementFromPoint(later.x, later.y);"
            " const isStill = find() === e && later.x === place.x && later.y === place.y && (!top || e.contains(top));"
            " if (!isStill) return null;"
            # Also one that has taken the place of the element by then.
            " window.missedClick = true; document.addEventListener('click', click => {"
            " if (find()?.contains(click.target)) window.missedClick = false; }, {capture: true, once: true});"
            " return later; })()")
        for _ in range(5):
            place = self.until(still, f"{selector} with {text!r}")
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", {"type": kind, "x": place["x"], "y": place["y"], "button": "left", "clickCount": 1})
            # The page may have replaced the element meanwhile, so that no click came of it. A new page knows nothing of it.
            try:
                if not self.run(f"window.missedClick === true && Boolean({find})"):
                    return
            except PageError:
                return

    def type(self, text):
        self.send("Input.insertText", {"text": text})

    def key(self, key, modifiers=0, code=None, number=0):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code or key, "modifiers": modifiers, "windowsVirtualKeyCode": number})

    def fill(self, selector, text):
        """Types into a control in the place of what it has."""
        self.until(f"document.querySelector({json.dumps(selector)}) !== null", selector)
        self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select?.(); }})()")
        self.type(text)

    def screenshot(self, path):
        image = self.send("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def close(self):
        self.chromium.send("Target.closeTarget", {"targetId": self.target})
