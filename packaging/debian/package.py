"""Makes the Debian package of what Cargo.toml says, where cargo-deb is not: for `rootfs`, which tries it out. Others get cargo-deb's.

    package.py BINARY SNIPPETS PACKAGE.deb      SNIPPETS is debhelper's folder of autoscripts, which cargo-deb carries a copy of
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# An entry that only cargo-deb understands would be missing in what is tried out, and nobody would see it.
KNOWN = set(
    "maintainer copyright license-file extended-description section priority depends recommends suggests maintainer-scripts "
    "conf-files assets systemd-units".split()
)
# What cargo-deb inserts for a unit that is enabled, started, and restarted once an upgrade is complete.
SNIPPETS = {
    "postinst": ["postinst-systemd-enable", "postinst-systemd-restart"],
    "prerm": ["prerm-systemd-restart"],
    "postrm": ["postrm-systemd", "postrm-systemd-reload-only"],
}


def said(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout.strip()


def install(tree, deb, binary):
    for source, target, mode in deb["assets"]:
        built = source.startswith("target/release/")
        files = [binary] if built else sorted(ROOT.glob(source))
        if not files:
            sys.exit(f"there is no {source}")
        for file in files:
            path = tree / target / Path(source if built else file).name if target.endswith("/") else tree / target
            path.parent.mkdir(parents=True, exist_ok=True)
            if built:
                subprocess.run(["strip", "--strip-debug", "-o", path, file], check=True)
            else:
                shutil.copyfile(file, path)
            path.chmod(int(mode, 8))
    units = tree / "lib/systemd/system"
    units.mkdir(parents=True)
    unit = units / "callboard.service"
    shutil.copyfile(ROOT / deb["systemd-units"]["unit-scripts"] / unit.name, unit)
    unit.chmod(0o644)
    notice = tree / "usr/share/doc/callboard/copyright"
    notice.write_text(f"Copyright {deb['copyright']}\n\n" + (ROOT / deb["license-file"][0]).read_text())
    notice.chmod(0o644)


def scripts(folder, deb, snippets):
    for name, wanted in SNIPPETS.items():
        own = ROOT / deb["maintainer-scripts"] / name
        script = own.read_text() if own.exists() else "#!/bin/sh\nset -e\n#DEBHELPER#\n"
        inserted = "".join((snippets / part).read_text() for part in wanted)
        for placeholder, value in (("UNITFILES", "callboard.service"), ("UNITFILE", "callboard.service"), ("RESTART_ACTION", "restart")):
            inserted = inserted.replace(f"#{placeholder}#", value)
        path = folder / name
        path.write_text(script.replace("#DEBHELPER#", inserted))
        path.chmod(0o755)


def control(folder, package, version, deb, binary):
    with tempfile.TemporaryDirectory() as apart:
        # It wants a source package around it, and says what the binary is linked with.
        (Path(apart) / "debian").mkdir()
        (Path(apart) / "debian/control").touch()
        linked = said("dpkg-shlibdeps", "-O", str(binary), cwd=apart, stderr=subprocess.DEVNULL).removeprefix("shlibs:Depends=")
    fields = {
        "Package": package["name"],
        "Version": f"{version}-1",
        "Architecture": said("dpkg", "--print-architecture"),
        "Maintainer": deb["maintainer"],
        "Section": deb["section"],
        "Priority": deb["priority"],
        "Depends": deb["depends"].replace("$auto", linked),
        "Recommends": deb["recommends"],
        "Suggests": deb["suggests"],
        "Description": "\n ".join([package["description"], *deb["extended-description"].splitlines()]),
    }
    (folder / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    (folder / "conffiles").write_text("".join(f"{path}\n" for path in deb["conf-files"]))


def main(binary, snippets, target):
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    package = manifest["package"]
    deb = package["metadata"]["deb"]
    unknown = sorted(deb.keys() - KNOWN) + [f"systemd-units.{name}" for name in sorted(deb["systemd-units"].keys() - {"unit-scripts"})]
    if unknown:
        sys.exit(f"Cargo.toml: package.metadata.deb has what this program does not understand: {', '.join(unknown)}")
    binary = Path(binary).resolve()
    with tempfile.TemporaryDirectory() as apart:
        tree = Path(apart)
        tree.chmod(0o755)
        install(tree, deb, binary)
        folder = tree / "DEBIAN"
        folder.mkdir()
        control(folder, package, manifest["workspace"]["package"]["version"], deb, binary)
        scripts(folder, deb, Path(snippets))
        # Hardly compressed: it is installed once and thrown away.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, target], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
