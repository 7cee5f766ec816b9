"""A real S3 server (seaweedfs) for tests, on free ports of this machine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "bundles"
_IDENTITY = {
    "name": "tests",
    "credentials": [{"accessKey": "tests-key", "secretKey": "tests-secret"}],
    "actions": ["Admin", "Read", "Write", "List"],
}
_START_LIMIT_S = 30.0


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Run the server below the folder; yield the variables that lead to it."""
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [_IDENTITY]}), encoding="utf-8")
    names = ("master", "volume", "filer", "s3", "webdav", "admin")
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    arguments = [f"-{name}.port={port}" for name, port in ports.items()]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [
                *(_program(), f"-logdir={folder}", "mini", f"-dir={folder}", f"-bucket={BUCKET}"),
                *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.config={config}"),
                *("-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
                *arguments,
            ],
            stdout=log,
            stderr=log,
        )
    try:
        endpoint = f"http://127.0.0.1:{ports['s3']}"
        _wait(f"{endpoint}/healthz", server)
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "tests-key",
            "AWS_SECRET_ACCESS_KEY": "tests-secret",
        }
    finally:
        server.kill()
        server.wait()


def _program() -> str:
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else shutil.which("weed") or "weed"


def _free_ports(count: int) -> list[int]:
    """Ports whose neighbour 10000 higher is free too: the server takes both."""
    found: list[int] = []
    for port in range(23_000, 32_000, 7):
        if all(_is_free(each) for each in (port, port + 10_000)):
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports on this machine")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    limit_s = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < limit_s and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("the S3 server did not start; see server.log")
