"""One suite for every kind of store: a folder, and a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import ObjectExists, ObjectMissing, StoreRefused, StoreUnreachable, UsageError
from bench.s3 import s3_store
from bench.store import Store, open_store
from tests.bench.runs import bench_run
from tests.s3_server import BUCKET, s3_server


@pytest.fixture(scope="module")
def s3_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with s3_server(tmp_path_factory.mktemp("s3")) as environment:
        yield environment


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, s3_environment: dict[str, str]) -> Store:
    if request.param == "file":
        return open_store(f"file://{tmp_path}")
    return s3_store(f"s3://{BUCKET}/{tmp_path.name}", s3_environment)


def test_an_object_comes_back_and_is_listed(store: Store) -> None:
    store.put_new("a/b c+d.parquet", b"bytes")
    assert store.get("a/b c+d.parquet") == b"bytes"
    assert store.list_keys("a/") == ["a/b c+d.parquet"]


def test_an_object_is_never_replaced(store: Store) -> None:
    store.put_new("a/key", b"first")
    with pytest.raises(ObjectExists):
        store.put_new("a/key", b"second")
    assert store.get("a/key") == b"first"


def test_a_missing_object_is_named(store: Store) -> None:
    with pytest.raises(ObjectMissing, match="a/none"):
        store.get("a/none")


def test_wrong_keys_are_refused(s3_environment: dict[str, str]) -> None:
    with pytest.raises(StoreRefused, match="403"):
        s3_store(f"s3://{BUCKET}", {**s3_environment, "AWS_SECRET_ACCESS_KEY": "wrong"}).put_new("a", b"b")


def test_a_server_that_is_not_there_is_unreachable(s3_environment: dict[str, str]) -> None:
    with pytest.raises(StoreUnreachable):
        s3_store(f"s3://{BUCKET}", {**s3_environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}).get("a")


@pytest.mark.parametrize("url", ["http://x", "file://host/x", "s3://", "nothing"])
def test_an_address_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        open_store(url)


def test_a_run_is_stored_in_a_bucket(tmp_path: Path, s3_environment: dict[str, str]) -> None:
    prefix = f"s3://{BUCKET}/{tmp_path.name}"
    ran = bench_run(tmp_path, "--store", prefix, "--", "true", environment=s3_environment)
    assert ran.exit_code == 0, ran.err
    names = [key.rpartition("/")[2] for key in s3_store(prefix, s3_environment).list_keys("bundles/v1/")]
    assert names[0] == "closing.parquet"
    assert "opening.parquet" in names
