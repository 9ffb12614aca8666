"""The servers under test: processes that listen on a port of loopback, and can be killed and started again."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

READY_SECONDS = 60


def reserve_port():
    """A socket that is bound and does not listen: no other program gets its port, and a server can listen on it."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation


class Server:
    """One process; the port and the data stay over a restart."""

    #: Whether documents survive a restart.
    is_durable = False
    ready = re.compile("")

    def __init__(self, scratch):
        self.scratch = pathlib.Path(scratch)
        self.reservation = reserve_port()
        self.port = self.reservation.getsockname()[1]
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        log = self.scratch / f"{self.name}.log"
        with open(log, "w") as output:
            # A session of its own: the emulator's start script leaves a Java process behind when it is stopped alone.
            self.process = subprocess.Popen(self.command(), stdout=output, stderr=output, start_new_session=True)
        end = time.monotonic() + READY_SECONDS
        while not self.ready.search(log.read_text()):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"{self.name} did not become ready: {log.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self, with_signal=signal.SIGTERM):
        if self.process is None:
            return
        os.killpg(self.process.pid, with_signal)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def kill(self):
        self.stop(signal.SIGKILL)

    def guarded(self):
        """A server of the same kind with rules; None where there is none."""
        return None


class Hearth(Server):
    name = "Hearth"
    is_durable = True
    ready = re.compile("hearth ready on")

    def __init__(self, binary, scratch):
        super().__init__(scratch)
        self.binary = binary

    def command(self):
        data = str(self.scratch / "hearth-data")
        return [self.binary, "serve", "--data", data, "--port", str(self.port), "--log-level", "warning"]

    def guarded(self):
        return GuardedHearth(self.binary, self.scratch)


class GuardedHearth(Hearth):
    """Users with tokens of an issuer of the tests reach the collection of their name, in the project `web`."""

    name = "Hearth with rules"
    issuer = "https://id.example"
    rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /{user}/{document} { allow read, write: if request.auth.uid == user; }
          }
        }
        """

    def __init__(self, binary, scratch):
        super().__init__(binary, scratch)
        self.key, self.rules_file = self.scratch / "issuer.pem", self.scratch / "firestore.rules"
        self.keys = self.scratch / "issuer-keys"
        self.keys.mkdir()
        self.rules_file.write_text(self.rules)
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key],
            check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "pkey", "-in", self.key, "-pubout", "-out", self.keys / "issuer.pem"], check=True)

    def command(self):
        return [
            self.binary, "serve", "--data", str(self.scratch / "guarded-data"), "--port", str(self.port), "--log-level",
            "warning", "--rules", str(self.rules_file), "--token-issuer", self.issuer, "--token-audience", "web",
            "--token-projects", "web", "--token-keys", str(self.keys)]

    def mint(self, uid, seconds):
        """A token of a user, valid for so many seconds."""
        minted = subprocess.run(
            [self.binary, "token", "mint", "--uid", uid, "--key", self.key, "--issuer", self.issuer, "--audience", "web",
             "--lifetime", f"{seconds}s"], check=True, capture_output=True, text=True)
        return minted.stdout.strip()


class Emulator(Server):
    name = "emulator"
    ready = re.compile("Dev App Server is now running")
    package = "google-cloud-cli-firestore-emulator"

    @classmethod
    def start_script(cls):
        """The path of the emulator's start script; None where it is not installed."""
        if not shutil.which("dpkg") or not shutil.which("java"):
            return None
        files = subprocess.run(["dpkg", "-L", cls.package], capture_output=True, text=True).stdout.splitlines()
        return next((file for file in files if file.endswith("/cloud_firestore_emulator")), None)

    def command(self):
        return [self.start_script(), "start", "--host=127.0.0.1", f"--port={self.port}"]
