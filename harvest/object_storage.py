"""A bucket as a store, through obstore (the extra `s3`); credentials and endpoint come from `AWS_*` variables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import obstore
import requests
from obstore.exceptions import BaseError
from obstore.store import S3Store

from harvest.errors import ObjectMissing, StoreUnreadable, UsageError
from harvest.store import ObjectStore, StoredObject

_CLOCK_TIMEOUT_S = 20
_CLOCK_STEP = timedelta(seconds=1)
_MAX_RETRY_COUNT = 5
_RETRY_TIMEOUT_S = 60
_MAX_REASON_CHARACTERS = 300


def open_bucket(url: str, environment: Mapping[str, str]) -> ObjectStore:
    """Return the bucket (and prefix in it) that an s3:// URL names. Nothing is asked of it yet.

    Raises:
        UsageError: no bucket in the URL.
    """
    parts = urlsplit(url)
    if not parts.netloc:
        raise UsageError(f"store {url!r} names no bucket, as in s3://BUCKET/PREFIX. Nothing was read.")
    endpoint = s3_endpoint(environment)
    bucket = S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        endpoint=endpoint,
        client_options={"allow_http": endpoint.startswith("http://")},
        retry_config={"max_retries": _MAX_RETRY_COUNT, "retry_timeout": timedelta(seconds=_RETRY_TIMEOUT_S)},
    )
    return BucketStore(url.rstrip("/"), bucket, endpoint)


def s3_endpoint(environment: Mapping[str, str]) -> str:
    """Return the URL of the S3 service: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else Amazon's of the region."""
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    named = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    return named or f"https://s3.{region}.amazonaws.com"


class BucketStore:
    """A bucket, or a prefix in it."""

    def __init__(self, url: str, bucket: S3Store, endpoint: str) -> None:
        self.url = url
        self._bucket = bucket
        self._endpoint = endpoint

    def list(self, prefix: str) -> list[StoredObject]:
        try:
            found = [each for page in obstore.list(self._bucket, prefix, chunk_size=1000) for each in page]
        except (BaseError, FileNotFoundError) as error:
            raise self._unreadable(prefix, error) from error
        objects = (StoredObject(each["path"], each["size"], each["last_modified"].astimezone(UTC)) for each in found)
        return sorted(objects, key=lambda each: each.key)

    def get(self, key: str) -> bytes:
        try:
            return bytes(obstore.get(self._bucket, key).bytes())
        except FileNotFoundError:
            raise ObjectMissing(f"{self.url} has no object {key!r}.") from None
        except BaseError as error:
            raise self._unreadable(key, error) from error

    def now(self) -> datetime:
        """Return the service's clock: every answer, a refusal too, carries it as `Date`, in whole seconds.

        What was stored within that second may be listed as stored after its beginning. So its end is given, once it
        is over: then all that was stored up to it can be listed.
        """
        try:
            answer = requests.head(self._endpoint, timeout=_CLOCK_TIMEOUT_S, allow_redirects=False)
            second = parsedate_to_datetime(answer.headers["Date"]).astimezone(UTC)
        except (requests.RequestException, KeyError, ValueError) as error:
            raise StoreUnreadable(
                f"{self._endpoint} did not tell its time ({type(error).__name__}). Nothing was changed; "
                "run the same command again, or give the instant with --as-of."
            ) from error
        time.sleep(_CLOCK_STEP.total_seconds())
        return second + _CLOCK_STEP - timedelta(microseconds=1)

    def _unreadable(self, key: str, error: Exception) -> StoreUnreadable:
        reason = " ".join(str(error).split()).partition(" Debug source:")[0][:_MAX_REASON_CHARACTERS]
        return StoreUnreadable(
            f"{self.url} did not give {key!r}: {reason}. The published tables are as before; check the bucket's name, "
            "AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, then run the same command again."
        )
