"""Runs a module of a page in a headless chromium, and prints what it logs until it logs nothing for a second.

usage: page.py MODULE SDK ADDRESS SCRATCH
The module imports "firebase/app" and "firebase/firestore", which are served from SDK, and names the server as
127.0.0.1:8080, which becomes ADDRESS.
"""
import http.server
import os
import queue
import subprocess
import sys
import threading

MODULE, SDK, ADDRESS, SCRATCH = sys.argv[1:]
logged = queue.Queue()

PAGE = b"""<!doctype html><script type="module">
const send = (text) => fetch("/log", { method: "POST", body: text });
console.log = (...words) =>
  send(words.map((word) => (typeof word === "string" ? word : JSON.stringify(word))).join(" "));
addEventListener("error", (event) => send("error: " + event.message));
addEventListener("unhandledrejection", (event) => send("error: " + event.reason));
import("/first.mjs").then(() => send("end"), (error) => send("error: " + error));
</script>"""


def text_of(path):
    name = path.lstrip("/").split("?")[0]
    if name == "":
        return "text/html", PAGE
    if name == "first.mjs":
        host, port = ADDRESS.rsplit(":", 1)
        text = open(MODULE).read()
        text = text.replace('"127.0.0.1", 8080', '"%s", %s' % (host, port))
        return "text/javascript", text.replace('"firebase/', '"/sdk/firebase-').replace("app\"", "app.js\"").replace(
            'firestore"', 'firestore.js"').encode()
    if name.startswith("sdk/") and "/" not in name[4:]:
        text = open(os.path.join(SDK, name[4:])).read()
        start = text.find("https://www.gstatic.com/firebasejs/")
        if start >= 0:
            prefix = text[start:text.index("/firebase-app.js", start)]
            text = text.replace(prefix, "/sdk")
        return "text/javascript", text.encode()
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = text_of(self.path)
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", found[0] if found else "text/plain")
        self.end_headers()
        if found:
            self.wfile.write(found[1])

    def do_POST(self):
        logged.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
browser = subprocess.Popen(
    ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + os.path.join(SCRATCH, "browser"),
     "http://127.0.0.1:%d/" % server.server_address[1]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    while True:
        line = logged.get(timeout=300)
        if line == "end":
            break
        print(line, flush=True)
        if line.startswith("error"):
            sys.exit(1)
finally:
    browser.terminate()
    browser.wait()
