"""What `check` asks Python: `checks.py NAME` exits with 1 and says why, `checks.py title NAME` says what it is about."""

import json
import re
import sys
import tomllib
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Not ours, but in our alerts: Prometheus' own, and node_exporter's.
FOREIGN = {"up", "node_filesystem_avail_bytes", "node_filesystem_size_bytes"}
# Of the process itself, as the crate metrics-process names them.
PROCESS = {
    "process_" + name
    for name in (
        "cpu_seconds_total open_fds max_fds virtual_memory_bytes virtual_memory_max_bytes resident_memory_bytes "
        "start_time_seconds threads"
    ).split()
} | {"callboard_build_info"}


def text_files():
    for path in sorted(HERE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, path.read_text()


def documents(name):
    return [document for document in yaml.safe_load_all((HERE / name).read_text()) if document]


def every_yaml_file_is_yaml():
    for path in sorted(HERE.rglob("*.yaml")):
        try:
            assert list(yaml.safe_load_all(path.read_text())), f"{path.name}: is empty"
        except yaml.YAMLError as error:
            yield f"{path.name}: {error}"


def panels():
    board = json.loads((HERE / "grafana/callboard.json").read_text())
    return board, [panel for panel in board["panels"] if panel["type"] != "row"]


def the_board_is_whole():
    board, all_panels = panels()
    ids = [panel["id"] for panel in board["panels"]]
    if len(ids) != len(set(ids)):
        yield "two panels have one id"
    taken = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        for cell in (
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ):
            if cell in taken or cell[0] > 23:
                yield f"{panel['title']}: lies over {taken.get(cell, 'the edge')}"
                break
            taken[cell] = panel["title"]
    variables = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval"}
    for panel in all_panels:
        if not panel["targets"]:
            yield f"{panel['title']}: shows nothing"
        for target in panel["targets"]:
            for name in re.findall(r"\$(\w+)", target["expr"]):
                if name not in variables:
                    yield f"{panel['title']}: ${name} is no variable"


def every_setting_exists():
    """A slip in CALLBOARD_... goes unseen: Callboard only warns of it. In a settings file it does not start."""
    known = set(re.findall(r"^(\w+) =", (ROOT / "settings.default.toml").read_text(), re.M))
    for path, text in text_files():
        if path.name in ("checks.py", "check"):
            continue
        for name in sorted(set(re.findall(r"\bCALLBOARD_([A-Z0-9_]*[A-Z0-9])\b", text))):
            # What Kubernetes would set, named in a comment there.
            if name.lower() not in known and not (path.parent.name == "kubernetes" and name == "PORT"):
                yield f"{path.relative_to(HERE)}: CALLBOARD_{name} is not a setting"
    for name in re.findall(r"^(?:# )?(\w+) = ", (HERE / "systemd/callboard.toml").read_text(), re.M):
        if name not in known:
            yield f"systemd/callboard.toml: {name} is not a setting"


def documented():
    """Each metric of operations.md with the labels that its row names."""
    metrics = {name: None for name in FOREIGN | PROCESS}
    for line in (ROOT / "docs/internals/operations.md").read_text().splitlines():
        if line.startswith("| `callboard_"):
            first, rest = line[1:].split("|", 1)
            for name, labels in re.findall(r"`(callboard_\w+)(?:\{([^}]*)\})?`", first):
                metrics[name] = set(labels.split(",")) if labels else set(re.findall(r"`(\w+)`", rest))
    return metrics


def every_metric_is_documented():
    known = documented()
    rules = [
        (rule["alert"], rule["expr"])
        for group in yaml.safe_load((HERE / "prometheus/alerts.yaml").read_text())["groups"]
        for rule in group["rules"]
    ]
    board, all_panels = panels()
    shown = [(panel["title"], target["expr"]) for panel in all_panels for target in panel["targets"]]
    shown += [(note["name"], note["expr"]) for note in board["annotations"]["list"]]
    for where, expression in rules + shown:
        for name, selector in re.findall(r"\b((?:callboard|process|node)_\w+|up)\b(?:\{([^}]*)\})?", expression):
            plain = re.sub(r"_(sum|count)$", "", name)
            if name not in known and plain not in known:
                yield f"{where}: {name} is not in docs/internals/operations.md"
                continue
            labels = known.get(plain, known.get(name))
            for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
                if labels is not None and label not in labels | {"job", "instance", "quantile"}:
                    yield f"{where}: {name} has no label {label}"


def every_alert_is_tested_and_says_what_to_do():
    fire = set()
    for test in yaml.safe_load((HERE / "prometheus/alerts_test.yaml").read_text())["tests"]:
        samples = [case["exp_samples"] for case in test.get("promql_expr_test", [])]
        if samples and not any(not sample for sample in samples):
            yield f"a test of {samples} has no moment at which nothing fires"
        fire |= {name for sample in samples for one in sample for name in re.findall(r'alertname="(\w+)"', one["labels"])}
    for group in yaml.safe_load((HERE / "prometheus/alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            if rule["alert"] not in fire:
                yield f"{rule['alert']}: no test in which it fires"
            if set(rule["annotations"]) != {"summary", "action"} or rule["labels"]["severity"] not in ("critical", "warning"):
                yield f"{rule['alert']}: wants summary, action, and a severity"


def compose_files_hold_together():
    for name in ("compose.yaml", "compose.nodes.yaml"):
        (file,) = documents(name)
        published = {}
        for service, of in file["services"].items():
            if "image" not in of or "restart" not in of:
                yield f"{name}: {service} has no image, or is not started again"
            for network in of["networks"]:
                if network not in file["networks"]:
                    yield f"{name}: {service}: there is no network {network}"
            for volume in of.get("volumes", []):
                source = volume.split(":")[0]
                if source not in file["volumes"] and not (HERE / source).exists():
                    yield f"{name}: {service}: there is no volume {source}"
            for other in of.get("depends_on", {}):
                if "healthcheck" not in file["services"].get(other, {}):
                    yield f"{name}: {service} waits for {other}, whose health nobody checks"
            for port in of.get("ports", []):
                outside = re.sub(r"^(\S+?):.*?(/\w+)?$", r"\1\2", port)
                if outside in published:
                    yield f"{name}: {service} and {published[outside]} both publish {outside}"
                published[outside] = service
            # What is announced to the other side has to be reachable there, under the same number.
            settings = of.get("environment", {})
            open_ports = set(re.findall(r"[\d-]+(?=:[\d-]+/udp)", " ".join(of.get("ports", []))))
            for setting in ("CALLBOARD_SIP_BIND", "CALLBOARD_RTP_PORTS", "CALLBOARD_MEDIA_BIND"):
                if setting in settings and settings[setting].split(":")[-1] not in open_ports:
                    yield f"{name}: {service}: {setting} is not published"


def compose_files_are_as_specified():
    """By the specification's own grammar; anchors are resolved first, for its reader knows no merge keys."""
    import compose_spec

    for name in ("compose.yaml", "compose.nodes.yaml"):
        (file,) = documents(name)
        plain = yaml.safe_dump(json.loads(json.dumps(file)))
        try:
            compose_spec.PyCompose.from_yaml(plain).validate()
        except ValueError as error:
            yield f"{name}: {error}"


def kubernetes_manifests_hold_together():
    """What no schema sees: selectors, ports by name, and what is referred to."""
    for name in ("single.yaml", "nodes.yaml"):
        parts = documents(f"kubernetes/{name}")
        of = {(part["kind"], part["metadata"]["name"]): part for part in parts}
        pods = of["StatefulSet", "callboard"]["spec"]["template"]
        (container,) = pods["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        labels = pods["metadata"]["labels"].items()
        for (kind, _), part in of.items():
            if part["metadata"].get("namespace") != "callboard":
                yield f"{name}: {kind} is in no namespace"
            spec = part.get("spec", {})
            selector = spec.get("podSelector", spec.get("selector", {}))
            if kind != "ConfigMap" and not selector.get("matchLabels", selector).items() <= labels:
                yield f"{name}: {kind} selects no pod"
            used = [port.get("targetPort") for port in spec.get("ports", [])] + [
                port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]
            ]
            for port in used:
                if port not in ports:
                    yield f"{name}: {kind}: the pod has no port {port}"
        if ("Service", of["StatefulSet", "callboard"]["spec"]["serviceName"]) not in of:
            yield f"{name}: the StatefulSet's Service is missing"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if container[probe]["httpGet"]["path"] != ("/readyz" if probe == "readinessProbe" else "/healthz"):
                yield f"{name}: {probe} asks the wrong path"
        if pods["spec"]["terminationGracePeriodSeconds"] < 50:
            yield f"{name}: preStop, drain_seconds and commit_timeout_seconds together take up to 45 s"


def merge(base, patch):
    """Strategic, as far as our patch needs it: lists of what has a name are merged by it."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {key: merge(base[key], patch[key]) if key in base and key in patch else patch.get(key, base.get(key)) for key in {**base, **patch}}
    if isinstance(base, list) and all(isinstance(entry, dict) and "name" in entry for entry in base + patch):
        return list(merge({entry["name"]: entry for entry in base}, {entry["name"]: entry for entry in patch}).values())
    return patch


def merged(path):
    """nodes.yaml as it is with host-network.patch.yaml."""
    (patch,) = documents("kubernetes/host-network.patch.yaml")
    (base,) = [part for part in documents("kubernetes/nodes.yaml") if part["kind"] == "StatefulSet"]
    Path(path).write_text(yaml.safe_dump(merge(base, patch)))


def the_workflow_pins_its_actions():
    (workflow,) = documents("release.yaml")
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40)):
                yield f"{name}: {step['uses']} is not pinned to a commit"
            if "${{" in step.get("run", ""):
                yield f"{name}: `{step.get('name')}` has an expression in its script: hand it over as an environment variable"
        for needed in [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []):
            if needed not in workflow["jobs"]:
                yield f"{name}: there is no job {needed}"


def the_debian_package_finds_its_files():
    deb = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    installed = set()
    for source, target, _ in deb["assets"]:
        if not source.startswith("target/release/") and not list(ROOT.glob(source)):
            yield f"there is no {source}"
        installed.add("/" + target + (source.rsplit("/", 1)[-1] if target.endswith("/") else ""))
    for path in deb["conf-files"]:
        if path not in installed:
            yield f"{path} is a conffile, and not in the package"
    for folder, name in ((deb["maintainer-scripts"], "postinst"), (deb["systemd-units"]["unit-scripts"], "callboard.service")):
        if not (ROOT / folder / name).exists():
            yield f"there is no {folder}{name}"


def no_secret_is_here():
    for path, text in text_files():
        # 32 bytes in base64.
        for found in re.findall(r"(?<![\w/+])[A-Za-z0-9+/]{43}=", text):
            yield f"{path.relative_to(HERE)}: {found[:4]}… looks like a secret key"


CHECKS = {
    "yaml": ("YAML files can be parsed", every_yaml_file_is_yaml),
    "board": ("Grafana board: JSON, places of panels, variables", the_board_is_whole),
    "settings": ("each CALLBOARD_... and each entry of callboard.toml is a setting", every_setting_exists),
    "metrics": ("each metric and label of alerts and board is documented", every_metric_is_documented),
    "tests": ("each alert has a test, a summary and an action", every_alert_is_tested_and_says_what_to_do),
    "compose": ("Compose files: networks, volumes, ports", compose_files_hold_together),
    "compose-spec": ("Compose files, as the Compose specification wants them", compose_files_are_as_specified),
    "kubernetes": ("Kubernetes: selectors, ports, probes", kubernetes_manifests_hold_together),
    "workflow": ("release.yaml: actions pinned, scripts without expressions", the_workflow_pins_its_actions),
    "debian": ("the Debian package finds its files", the_debian_package_finds_its_files),
    "secrets": ("no secret key in any file", no_secret_is_here),
}


def main(name, *arguments):
    if name == "title":
        print(CHECKS[arguments[0]][0])
        return 0
    if name == "merged":
        merged(*arguments)
        return 0
    wrong = list(CHECKS[name][1]())
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
