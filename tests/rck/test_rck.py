# SPDX-License-Identifier: Apache-2.0
"""Iceberg's REST compatibility kit against the served catalog: nothing fails, on any store."""
import os
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lib.postgres import Postgres
from lib.seaweed import KEY, SECRET, Seaweed
from lib.serve import Served

TOP = Path(__file__).resolve().parents[2]
KIT = TOP / ".deps" / "rest-kit"
SWITCHES = {
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.overrides-requested-location": "false",
    "rck.supports-names-with-dot": "true",
    "rck.supports-variant": "false",
    "rck.purge-test-namespaces": "true",
}
CASES = 157
PASSED_AT_LEAST = 145


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    """The class path: the pinned jars and our two classes."""
    classes = tmp_path_factory.mktemp("kit")
    sources = sorted((Path(__file__).parent / "src").rglob("*.java"))
    subprocess.run(["javac", "-nowarn", "-cp", f"{KIT}/*", "-d", classes, *sources], check=True)
    return f"{KIT}/*:{classes}"


def run_kit(kit, uri, reports, client=None, only=()):
    """Runs the kit; returns {case: outcome}, outcome one of passed, failed, skipped."""
    env = {"PATH": "/usr/bin:/bin", "CATALOG_URI": uri, "CATALOG_WAREHOUSE": "knut", "HOME": str(reports)}
    for key, value in (client or {}).items():
        env["CATALOG_" + key.upper().replace("-", "__").replace(".", "_")] = value
    classes = ["--select-class=org.apache.iceberg.rest.KnutCatalogTests",
               "--select-class=org.apache.iceberg.rest.KnutViewCatalogTests"]
    done = subprocess.run(
        ["java", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
         *(f"-D{k}={v}" for k, v in SWITCHES.items()),
         "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", kit,
         "org.junit.platform.console.ConsoleLauncher", "execute", "--config=rck.local=false",
         *classes, *(f"--include-methodname={one}" for one in only), "--include-classname=.*",
         "--disable-banner", "--disable-ansi-colors", "--details=summary", f"--reports-dir={reports}"],
        env=env, capture_output=True, text=True, timeout=1500)
    outcomes = {}
    for report in reports.glob("TEST-*.xml"):
        for case in ET.parse(report).getroot().iter("testcase"):
            bad = case.find("failure") if case.find("failure") is not None else case.find("error")
            name = f"{case.get('classname').rsplit('.', 1)[-1]}.{case.get('name')}"
            while name in outcomes:  # the same case with other parameters
                name += "'"
            if bad is not None:
                outcomes[name] = "failed: " + (bad.get("message") or bad.text or "")[:400]
            else:
                outcomes[name] = "skipped" if case.find("skipped") is not None else "passed"
    assert outcomes, f"the kit did not run:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return outcomes


def check(outcomes, cases=CASES):
    failed = {name: why for name, why in outcomes.items() if why.startswith("failed")}
    assert not failed, "\n".join(f"{name}: {why}" for name, why in sorted(failed.items()))
    assert len(outcomes) == cases
    passed = sum(1 for why in outcomes.values() if why == "passed")
    assert passed >= PASSED_AT_LEAST, sorted(n for n, why in outcomes.items() if why == "skipped")


def test_the_kit_passes_on_sqlite_and_local_files(program, kit, tmp_path):
    with Served(program, "--warehouse", tmp_path / "warehouse", "--allow-location", "file:///tmp") as served:
        outcomes = run_kit(kit, served.uri, tmp_path / "reports")
        assert served.process.poll() is None
    check(outcomes)


def test_the_kit_passes_on_postgresql(program, kit, tmp_path):
    with Postgres() as database, Served(program, "--warehouse", tmp_path / "warehouse", "--db", database.uri(),
                                        "--allow-location", "file:///tmp") as served:
        check(run_kit(kit, served.uri, tmp_path / "reports"))


def test_the_kit_passes_on_object_storage(program, kit, tmp_path):
    with Seaweed(tmp_path / "store") as store:
        store.bucket("lake")
        with Served(program, "--warehouse-uri", "s3://lake/wh", "--s3-bucket", "lake", "--s3-endpoint", store.endpoint,
                    "--db", tmp_path / "catalog.db", "--allow-location", "file:///tmp",
                    env={**os.environ, **store.env}) as served:
            outcomes = run_kit(kit, served.uri, tmp_path / "reports", client={
                "io-impl": "org.apache.iceberg.io.ResolvingFileIO", "s3.access-key-id": KEY,
                "s3.secret-access-key": SECRET})
    # The kit moves the metadata file away by its local path, which it does not have here.
    assert outcomes.pop("KnutCatalogTests.testLoadTableWithMissingMetadataFile(Path)").startswith("failed")
    check(outcomes, CASES - 1)
