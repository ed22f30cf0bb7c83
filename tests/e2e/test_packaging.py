# SPDX-License-Identifier: Apache-2.0
"""knut cdc unit, install, uninstall, start, stop, k8s: one description, two forms, no secret outside its place."""
import json
import os
import re
import shutil
import stat
import subprocess

import kubernetes_validate
import pytest
import yaml

from lib.many import Many
from lib.program import TOP

SECRETS = {"PGPASSWORD": 'pa"ss $wo\\rd`x`: #1', "DORIS_PASSWORD": "0123", "KNUT_REST_TOKEN": "two\nlines-of-secret"}
CONFIG = """\
state: {state}
listen: ":9464"
sources:
  lake: {{warehouse: {folder}/wh}}
deliveries:
- {{source: lake, table: ns.a, sink: "duckdb:{folder}/out put/copy.duckdb", target: "main.${{TARGET:-a}}"}}
"""


class Place:
    """A user's home with a systemctl that writes down what it is asked."""

    def __init__(self, knut, folder):
        self.knut, self.folder = knut, folder
        self.config = folder / "etc" / "kn$ut %n.yaml"
        self.state = folder / "state" / "state.db"
        self.calls_file = folder / "calls"
        for path in self.config.parent, self.state.parent, folder / "bin", folder / "out put", folder / "home":
            path.mkdir(parents=True)
        self.config.write_text(CONFIG.format(state=self.state, folder=folder))
        fake = folder / "bin" / "systemctl"
        fake.write_text(f'#!/bin/sh\necho "$@" >>{self.calls_file}\nexit ${{SYSTEMCTL_STATUS:-0}}\n')
        fake.chmod(0o755)

    def __call__(self, command, *args, env=None, secrets=True, config=True):
        given = {"HOME": self.folder / "home", "XDG_CONFIG_HOME": "",
                 "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **(SECRETS if secrets else {}), **(env or {})}
        words = ("-c", self.config) if config else ()
        return self.knut("cdc", command, *words, *args, env=given)

    def calls(self):
        """What systemctl was asked since the last time."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return lines

    @property
    def unit(self):
        return self.folder / "home/.config/systemd/user/knut-cdc.service"

    @property
    def env(self):
        return self.folder / "home/.config/knut/knut-cdc.env"

    def changes(self, done):
        return {row["file"]: row["change"] for row in done.ok().rows}


@pytest.fixture
def place(knut, tmp_path):
    return Place(knut, tmp_path)


def exec_words(unit):
    """ExecStart as systemd takes it apart."""
    line = re.search(r"^ExecStart=(.*)$", unit, re.M)[1]
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    return [re.sub(r"\\(.)", r"\1", w).replace("%%", "%").replace("$$", "$") for w in words]


def environment(text):
    """An environment file as systemd reads it: double quotes, a backslash before " \\ $ `, newlines kept."""
    found = re.findall(r'^(\w+)="((?:[^"\\]|\\.)*)"$', text, re.M | re.S)
    return {name: re.sub(r'\\(["\\$`])', r"\1", value) for name, value in found}


def holds_secret(text):
    return [v for v in SECRETS.values() if v in text or v.split("\n")[-1] in text or json.dumps(v) in text]


def manifests(place, *args, **more):
    place("k8s", "--image", "knut:1", "--out", place.folder / "k8s", *args, **more).ok()
    return {p.name: p for p in (place.folder / "k8s").iterdir()}


def test_unit_and_statefulset_run_the_same_words_and_hold_no_secret(place):
    unit = place("unit").ok().out
    files = manifests(place)
    pod = yaml.safe_load(files["knut-cdc-statefulset.yaml"].read_text())["spec"]["template"]["spec"]
    program, *words = exec_words(unit)
    assert words == pod["containers"][0]["args"]
    assert words[:4] == ["cdc", "run", "--config", str(place.config)]
    assert program == str(place.knut.path)
    assert not holds_secret(unit)
    for name, path in files.items():
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o600 if name.endswith("-secret.yaml") else 0o644)
        assert name.endswith("-secret.yaml") or not holds_secret(path.read_text()), name
    assert yaml.safe_load(files["knut-cdc-secret.yaml"].read_text())["stringData"] == SECRETS
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    assert mounts["config"] == str(place.config) and mounts["state"] == str(place.state.parent)
    data = yaml.safe_load(files["knut-cdc-configmap.yaml"].read_text())["data"]
    assert data == {"knut.yaml": place.config.read_text()}


def test_manifests_are_what_kubernetes_takes(place):
    documents = [yaml.safe_load(path.read_text()) for path in manifests(place).values()]
    assert sorted(d["kind"] for d in documents) == ["ConfigMap", "PersistentVolumeClaim", "Secret", "Service",
                                                    "StatefulSet"]
    for document in documents:
        kubernetes_validate.validate(document, "1.33", strict=True)
    container = next(d for d in documents if d["kind"] == "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["ports"][0]["containerPort"] == 9464
    assert len(manifests(place, secrets=False)) == 5  # the Secret of before is not taken away
    again = place("k8s", "--image", "knut:1", "--out", place.folder / "k8s", "--output", "json", secrets=False)
    assert set(place.changes(again).values()) == {"unchanged"}


def test_what_cannot_run_in_kubernetes_is_told(place):
    out = ("--image", "knut:1", "--out", place.folder / "k8s")
    place("k8s", "--out", place.folder / "k8s").fails(2, "--image")
    place("k8s", "--image", "knut:1").fails(2, "--out DIR")
    place("k8s", *out, "--listen", "127.0.0.1:9464").fails(2, "probes must be reachable")
    place("k8s", *out, "--listen", "9464").fails(2, "probes must be reachable")
    place("k8s", *out, "--name", "No_Name").fails(2, "--name 'No_Name'")
    place.config.write_text(place.config.read_text().replace(str(place.state), "state.db"))
    place("k8s", *out).fails(2, "a folder of its own")
    assert not (place.folder / "k8s").exists()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd's own check is not on this machine")
@pytest.mark.parametrize("flags", [(), ("--system",), ("--system", "--run-as", "root"), ("--credentials", "/etc/x")])
def test_systemd_takes_the_unit(place, tmp_path, flags):
    unit = tmp_path / "knut-cdc.service"
    unit.write_text(place("unit", *flags).ok().out)
    scope = [] if "--system" in flags else ["--user"]
    done = subprocess.run(["systemd-analyze", *scope, "verify", "--man=no", str(unit)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    complaints = [line for line in done.stderr.splitlines() if "knut-cdc" in line]
    assert not complaints, done.stderr


def test_a_dry_run_shows_names_and_writes_nothing(place):
    done = place("install", "--dry-run").ok()
    assert not holds_secret(done.out) and all(name in done.out for name in SECRETS)
    assert "ExecStart=" in done.out
    assert not place.calls() and not list((place.folder / "home").iterdir())


def test_install_writes_once_and_again_only_what_has_changed(place):
    changes = place.changes(place("install", "--output", "json"))
    assert changes == {str(place.env): "written", str(place.unit): "written"}
    assert stat.S_IMODE(place.env.stat().st_mode) == 0o600
    assert environment(place.env.read_text()) == SECRETS
    assert not holds_secret(place.unit.read_text())
    assert place.calls() == ["--user daemon-reload", "--user enable knut-cdc.service", "--user restart knut-cdc.service"]
    changes = place.changes(place("install", "--output", "json"))
    assert set(changes.values()) == {"unchanged"} and not place.calls()
    changes = place.changes(place("install", "--output", "json", env={"DORIS_PASSWORD": "other"}))
    assert changes == {str(place.env): "written", str(place.unit): "unchanged"}
    assert place.calls()[-1] == "--user restart knut-cdc.service"
    place("start", config=False).ok()
    place("stop", config=False).ok()
    assert place.calls() == ["--user start knut-cdc.service", "--user stop knut-cdc.service"]


def test_variables_of_the_file_are_handed_over_too(place):
    place("install", env={"TARGET": "t"}).ok()
    assert environment(place.env.read_text())["TARGET"] == "t"


def test_credentials_take_the_place_of_an_environment_file(place):
    place("install", "--credentials", "/etc/secrets").ok()
    unit = place.unit.read_text()
    assert "LoadCredential=PGPASSWORD:/etc/secrets/PGPASSWORD\n" in unit
    assert "EnvironmentFile" not in unit and not place.env.exists() and not holds_secret(unit)


def test_uninstall_keeps_journal_and_configuration(place):
    place.state.write_text("journal")
    place("install").ok()
    place.calls()
    changes = place.changes(place("uninstall", "--output", "json", config=False))
    assert changes == {str(place.unit): "removed", str(place.env): "removed", str(place.config): "kept",
                       str(place.state): "kept"}
    assert place.calls() == ["--user disable --now knut-cdc.service", "--user daemon-reload"]
    assert place.state.exists() and place.config.exists() and not place.unit.exists() and not place.env.exists()
    place("uninstall", config=False).fails(1, "nothing is installed")


def test_purge_says_what_it_has_removed(place):
    for suffix in "", "-wal", ".lock":
        place.state.with_name(place.state.name + suffix).write_text("")
    place("install").ok()
    changes = place.changes(place("uninstall", "--purge", "--output", "json", config=False))
    assert changes == {str(path): "removed" for path in (
        place.unit, place.env, place.state, f"{place.state}-wal", f"{place.state}.lock", place.config)}
    assert not list(place.state.parent.iterdir())


def test_what_systemctl_says_is_handed_on(place):
    place("install", env={"SYSTEMCTL_STATUS": "3"}).fails(1, "systemctl daemon-reload .*ended with status 3")


def test_wrong_files_are_not_installed(place):
    place.config.write_text(place.config.read_text().replace("sources", "surces"))
    place("install").fails(2, "did you mean 'sources'")
    place("unit", "--run-as", "x").fails(2, "--run-as goes with --system")
    assert not place.calls() and not place.unit.exists()


def test_a_service_takes_its_secrets_from_systemds_credentials(knut, tmp_path):
    many = Many(knut, tmp_path)
    many.table("a")
    many.write([{"table": "ns.a", "target": "main.${DORIS_USER}"}])
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "DORIS_USER").write_text("from_credential\n")
    (folder / "not-a-variable").write_text("x")
    many.once(env={"CREDENTIALS_DIRECTORY": folder}).ok()
    assert len(many.copied("a", "from_credential")) == 10
    many.once(env={"CREDENTIALS_DIRECTORY": folder, "DORIS_USER": "from_environment"}).ok()
    assert len(many.copied("a", "from_environment")) == 10
    (folder / "PGPASSWORD").write_bytes(b"a\0b")
    many("run", "--once", env={"CREDENTIALS_DIRECTORY": folder}).fails(2, "credential .*PGPASSWORD")
    many("run", "--once", env={"CREDENTIALS_DIRECTORY": folder / "nope"}).fails(1, "CREDENTIALS_DIRECTORY")


def test_the_image_has_every_library_of_the_program(program):
    """Containerfile's last stage installs the packages of what the program is linked to."""
    text = (TOP / "Containerfile").read_text()
    installed = set(re.findall(r"\blib[\w.+-]+", text.rpartition("FROM ")[2]))
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    ours = re.findall(r"^\s+(lib(?:jansson|xxhash|zstd|snappy|lz4|sqlite3|curl|ssl|expat|microhttpd|gnutls|"
                      r"nghttp2|pq|yaml)[\w.-]*) => ", linked, re.M)
    assert ours
    for library in ours:
        stem = re.match(r"lib([a-z0-9]+)", library)[1]
        assert any(stem in package for package in installed), f"{library}: no package of it in Containerfile"
