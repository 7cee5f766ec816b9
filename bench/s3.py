"""An S3 bucket as a store: signed requests (SigV4), conditional creation, checksums. Standard library only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ssl
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from urllib.parse import quote, urlsplit

from bench.errors import ObjectExists, ObjectMissing, StoreError, StoreRefused, StoreUnreachable, UsageError

TIMEOUT_S = 30.0
_AWS_ENDPOINT = "https://s3.{region}.amazonaws.com"
_EXISTS = (409, 412)
_TRY_AGAIN = (408, 425, 429)


@dataclass(frozen=True)
class Credentials:
    """Keys as AWS's own tools read them from the environment; `token` is null for lasting keys."""

    key_id: str
    secret: str
    token: str | None
    region: str


def s3_store(url: str, environ: Mapping[str, str]) -> S3Store:
    """Return the store of `s3://BUCKET/PREFIX`, with keys, region and endpoint from AWS's variables.

    Raises:
        UsageError: the URL names no bucket, or a key is missing.
    """
    parts = urlsplit(url)
    missing = [name for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if not environ.get(name)]
    if not parts.netloc:
        raise UsageError(f"store {url!r} names no bucket, as in s3://BUCKET/PREFIX. Nothing was started.")
    if missing:
        raise UsageError(f"store {url!r} needs {' and '.join(missing)} in the environment. Nothing was started.")
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    credentials = Credentials(
        environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], environ.get("AWS_SESSION_TOKEN") or None, region
    )
    given = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    return S3Store(url, given or _AWS_ENDPOINT.format(region=region), credentials)


class S3Store:
    """A bucket, asked by path (`ENDPOINT/BUCKET/KEY`); every request has a connection and a time limit of its own."""

    credential = "keys"

    def __init__(self, url: str, endpoint: str, credentials: Credentials) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self._bucket = parts.netloc
        self._prefix = f"{parts.path.strip('/')}/" if parts.path.strip("/") else ""
        self._endpoint = urlsplit(endpoint)
        self._credentials = credentials

    def put_new(self, key: str, data: bytes, stored_at: datetime | None = None) -> None:
        digest = hashlib.sha256(data).digest()
        headers = {"if-none-match": "*", "x-amz-checksum-sha256": base64.b64encode(digest).decode()}
        status, answer = self._ask("PUT", f"/{self._bucket}/{self._prefix}{key}", {}, data, headers)
        if status in _EXISTS:
            raise ObjectExists(f"{self.url}: {key!r} is already there; it was left as it is.")
        self._check(status, answer, key)

    def get(self, key: str) -> bytes:
        status, answer = self._ask("GET", f"/{self._bucket}/{self._prefix}{key}", {})
        if status == 404:
            raise ObjectMissing(f"{self.url} has no object {key!r}.")
        self._check(status, answer, key)
        return answer

    def list_keys(self, prefix: str) -> list[str]:
        query = {"list-type": "2", "prefix": self._prefix + prefix}
        keys: list[str] = []
        while True:
            status, answer = self._ask("GET", f"/{self._bucket}", query)
            self._check(status, answer, prefix)
            page = ElementTree.fromstring(answer)
            keys += [each.text or "" for each in page.iterfind("{*}Contents/{*}Key")]
            token = page.findtext("{*}NextContinuationToken")
            if not token:
                return sorted(key.removeprefix(self._prefix) for key in keys)
            query["continuation-token"] = token

    def _check(self, status: int, answer: bytes, key: str) -> None:
        """A redirect is a refusal: another host must not get the signature."""
        if 200 <= status < 300:
            return
        text = f"{self.url} answered {status} for {key!r}: {answer[:300].decode('utf-8', 'replace')}"
        kind: type[StoreError] = StoreUnreachable if status >= 500 or status in _TRY_AGAIN else StoreRefused
        raise kind(text)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        target = self._endpoint.path.rstrip("/") + quote(path, safe="/-_.~")
        query_text = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
        signed = self._signed(method, target, query_text, body, headers or {})
        connection = self._connection()
        try:
            connection.request(method, f"{target}?{query_text}" if query_text else target, body, signed)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise StoreUnreachable(f"{self.url} at {self._endpoint.netloc} did not answer: {error!r}.") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._endpoint.scheme == "http":
            return http.client.HTTPConnection(self._endpoint.netloc, timeout=TIMEOUT_S)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(self._endpoint.netloc, timeout=TIMEOUT_S, context=context)

    def _signed(self, method: str, target: str, query: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with AWS Signature Version 4 over all of them."""
        now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        content = hashlib.sha256(body).hexdigest()
        sent = {"host": self._endpoint.netloc, "x-amz-content-sha256": content, "x-amz-date": now, **headers}
        if self._credentials.token:
            sent["x-amz-security-token"] = self._credentials.token
        names = ";".join(sorted(sent))
        lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
        request = f"{method}\n{target}\n{query}\n{lines}\n{names}\n{content}"
        scope = f"{now[:8]}/{self._credentials.region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{self._credentials.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        credential = f"{self._credentials.key_id}/{scope}"
        sent["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
        )
        return sent
