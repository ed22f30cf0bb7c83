# SPDX-License-Identifier: Apache-2.0
"""python tests/fakes/doris --state FILE: prints one line of JSON with its ports, runs until stopped."""
import argparse
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from server import Doris  # noqa: E402


def main():
    args = argparse.ArgumentParser(prog="doris stand-in", description=__doc__)
    args.add_argument("--state", required=True, help="SQLite file: tables, rows, transactions, labels")
    args.add_argument("--host", default="127.0.0.1")
    args.add_argument("--fe-port", type=int, default=0)
    args.add_argument("--be-ports", default="0,0", help="comma-separated; 0 = any")
    args.add_argument("--user", default="root")
    args.add_argument("--password", default="")
    args.add_argument("--database", default="d", help="exists though it has no table yet")
    args.add_argument("--profile", default="4.0", choices=["2.1", "3.0", "4.0", "4.1"])
    args.add_argument("--swallow", action="store_true", help="count the rows of bodies and drop them: for measuring a client")
    args.add_argument("--workers", type=int, default=0, help="loads that a backend has in hand at once; 0 = as many as come")
    args.add_argument("--tls", help="a second frontend's port speaks TLS: PEM file of certificate and key")
    options = args.parse_args()
    options.be_ports = [int(p) for p in options.be_ports.split(",")]
    doris = Doris(options)
    tls = {"fe_tls": doris.port(doris.fe_tls)} if options.tls else {}
    print(json.dumps({"fe": doris.port(doris.fe), **tls, "be": [doris.port(b) for b in doris.bes]}), flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    doris.state.close()


main()
