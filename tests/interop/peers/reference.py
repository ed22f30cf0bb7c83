# SPDX-License-Identifier: Apache-2.0
"""Java's reference REST catalog (iceberg-open-api's RESTCatalogServer over SQLite), on a random port."""
import os
import socket
import subprocess
from pathlib import Path

from lib.program import TOP

KIT = TOP / ".deps/rest-kit"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Reference:
    def __init__(self, folder: Path):
        assert KIT.exists(), "no reference server here: run 'tools/setup rest'"
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        port = free_port()
        self.uri = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "CATALOG_REST_PORT": str(port), "CATALOG_JDBC_STRICT__MODE": "true",
                       "CATALOG_URI": f"jdbc:sqlite:file:{folder}/catalog.db",
                       "CATALOG_WAREHOUSE": f"file://{self.warehouse}"}
        self.process = subprocess.Popen(
            ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", f"{KIT}/*",
             "org.apache.iceberg.rest.RESTCatalogServer"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "Started oejs.Server" in line:
                break
        else:
            raise AssertionError("the reference server did not start:\n" + "".join(said[-20:]))
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.drain.wait(60)
