"""A bucket as the store: the same harvest as from a folder, against a real S3 server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.s3 import s3_store
from harvest.errors import ObjectMissing, StoreUnreadable
from harvest.store import ObjectStore, open_store
from tests.harvest.bundles import RUN_TIME, altered, published, run_id, sealed_bundle
from tests.s3_server import BUCKET, s3_server

PACKAGE_PARENT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with s3_server(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture
def variables(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Set the AWS variables of this process, where obstore looks for them."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


def store_at(prefix: str) -> ObjectStore:
    return open_store(f"s3://{BUCKET}/{prefix}")


def test_what_the_runner_stored_is_listed_by_key_with_the_services_time(
    variables: dict[str, str], tmp_path: Path
) -> None:
    writer = s3_store(f"s3://{BUCKET}/{tmp_path.name}", variables)
    for key in ("bundles/b", "bundles/a c+d", "other/x"):
        writer.put_new(key, key.encode())
    reader = store_at(tmp_path.name)
    found = reader.list("bundles/")
    assert [(each.key, each.bytes) for each in found] == [("bundles/a c+d", 13), ("bundles/b", 9)]
    assert reader.get("bundles/a c+d") == b"bundles/a c+d"
    now = reader.now()
    assert all(now - timedelta(minutes=1) < each.stored_at <= now for each in found), "just stored is not the future"
    assert abs(now - datetime.now(UTC)) < timedelta(seconds=2)


def test_a_prefix_is_a_store_of_its_own(variables: dict[str, str], tmp_path: Path) -> None:
    s3_store(f"s3://{BUCKET}/{tmp_path.name}-other", variables).put_new("bundles/a", b"a")
    assert store_at(tmp_path.name).list("bundles/") == []


def test_an_object_that_is_gone_is_told_from_a_store_that_says_no(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ObjectMissing, match="bundles/none"):
        store_at("p").get("bundles/none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    for ask in (lambda: store_at("p").list("bundles/"), lambda: store_at("p").get("bundles/none")):
        with pytest.raises(StoreUnreadable, match=f"s3://{BUCKET}/p did not give"):
            ask()


def test_a_bucket_that_is_not_there_is_no_empty_store(variables: dict[str, str]) -> None:
    with pytest.raises(StoreUnreadable, match="s3://nobucket did not give"):
        open_store("s3://nobucket").list("bundles/")


def test_a_harvest_takes_bundles_in_from_a_bucket(environment: dict[str, str], tmp_path: Path) -> None:
    writer = s3_store(f"s3://{BUCKET}/harvest", environment)
    now = datetime.now(UTC)
    for number in range(3):
        id_ = run_id(number)
        objects = sealed_bundle(id_, started_at=now - RUN_TIME)
        for each in altered(objects, "logs-00001", b"torn") if number == 2 else objects:
            writer.put_new(each.key, each.data)
    argv = [
        sys.executable,
        "-m",
        "harvest",
        "run",
        "--store",
        f"s3://{BUCKET}/harvest",
        "--data",
        str(tmp_path),
        "--json",
    ]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=PACKAGE_PARENT,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 3, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["outcomes"], summary["harvest"]["in_flight_count"]) == ({"passed": 3}, 0)
    assert [each["reason"] for each in summary["rejects"]] == ["sha_mismatch"]
    assert published(tmp_path, "logs").height == 3 * 4 - 2
