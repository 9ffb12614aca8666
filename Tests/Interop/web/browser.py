"""A headless chromium, and the web server that gives it the pages, the SDK and control of the server under test."""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import urllib.parse

PAGES = pathlib.Path(__file__).parent / "pages"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
# The published files import each other from here.
CDN = re.compile(rb"https://www\.gstatic\.com/firebasejs/[0-9.]+/")
FLAGS = [
    "--headless=new", "--disable-gpu", "--no-first-run", "--disable-popup-blocking", "--disable-extensions",
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--disable-component-update", "--disable-sync", "--no-proxy-server",
]


def find():
    """The path of a chromium; None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Host(http.server.ThreadingHTTPServer):
    """Serves the pages on a free port of loopback. `reports` has what pages have sent; `done` is set at the end."""

    daemon_threads = True

    def __init__(self, sdk, server, folders=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.sdk = pathlib.Path(sdk)
        self.server_under_test = server
        self.folders = {"pages": PAGES, **dict(folders)}
        self.reports = []
        self.done = threading.Event()
        # Makes a token from a user and its seconds.
        self.mint = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """A browser that is closed cuts its connections; that is not worth a line."""

    def url(self, page, **parameters):
        return f"http://localhost:{self.server_port}/{page}?{urllib.parse.urlencode(parameters)}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", kind="text/plain; charset=utf-8"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def do_GET(self):
        top, _, rest = urllib.parse.urlsplit(self.path).path.lstrip("/").partition("/")
        folder = self.server.sdk if top == "sdk" else self.server.folders.get(top)
        if folder is None or ".." in rest or not (folder / rest).is_file():
            return self.reply(404)
        content = (folder / rest).read_bytes()
        if top == "sdk":
            content = CDN.sub(b"/sdk/", content)
        self.reply(200, content, TYPES.get(pathlib.Path(rest).suffix, "application/octet-stream"))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/report":
            report = json.loads(body)
            self.server.reports.append(report)
            if report.get("kind") == "done":
                self.server.done.set()
        elif self.path == "/control":
            getattr(self.server.server_under_test, {"kill": "kill", "start": "start"}[body.decode()])()
        elif self.path == "/mint":
            return self.reply(200, self.server.mint(**json.loads(body)).encode())
        self.reply(200)


class BufferingProxy(http.server.ThreadingHTTPServer):
    """Forwards requests to the server under test, and passes a response on when all of it is there."""

    daemon_threads = True

    def __init__(self, server):
        super().__init__(("127.0.0.1", 0), Forwarder)
        self.server_under_test = server
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """As above."""


class Forwarder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Of one connection, and of bodies, which are passed on whole.
    own = {"connection", "transfer-encoding", "content-length", "date", "server"}

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.server_under_test.port)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in self.own}
        upstream.request(self.command, self.path, body, headers)
        response = upstream.getresponse()
        content = response.read()
        upstream.close()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in self.own:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_OPTIONS = forward


@contextlib.contextmanager
def showing(chromium, url, scratch):
    """Runs a browser on a page with a profile of its own."""
    flags = [*FLAGS, f"--user-data-dir={scratch}/profile"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    with open(pathlib.Path(scratch) / "chromium.log", "w") as log:
        process = subprocess.Popen([chromium, *flags, url], stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(f"{scratch}/profile", ignore_errors=True)
