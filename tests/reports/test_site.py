"""The site of a hand-made dataset: whole, closed to the outside, and safe from what logs hold."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
HOSTILE = "<script>window.pwned=1</script>"


def program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def hostile_site(folder: Path) -> Path:
    """Build the site of one real run whose error line is markup."""
    (folder / "script").write_text(f"echo 'Error: {HOSTILE}' >&2; exit 3\n", encoding="utf-8")
    places = ["--store", f"file://{folder}/store", "--spool", f"{folder}/spool"]
    program(folder, "bench", "run", *places, "--machine-id", "7", "--", "bash", "script")
    assert program(folder, "harvest", "run", "--store", f"file://{folder}/store", "--data", "data").returncode == 0
    done = program(folder, "reports", "build", "--data", "data", "--site", "site")
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_every_page_has_the_policy_and_asks_nobody_outside(tmp_path: Path) -> None:
    pages = list(hostile_site(tmp_path).rglob("*.html"))
    assert len(pages) > 5
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert CSP in text.replace("&#39;", "'"), page
        assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", text), page
        assert HOSTILE not in text, page


def test_a_folder_with_somebody_elses_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "data").mkdir()
    done = program(tmp_path, "reports", "build", "--data", "data", "--site", "site")
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["mine.txt"]
