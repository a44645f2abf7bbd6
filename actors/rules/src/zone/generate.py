"""Writes prefixes.txt, the table of phone-number prefixes and time zones that mod.rs reads.

    pip install phonenumbers
    python3 actors/rules/src/zone/generate.py
"""

from pathlib import Path

from phonenumbers import __version__
from phonenumbers.timezone import UNKNOWN_TIMEZONE
from phonenumbers.tzdata import TIMEZONE_DATA

HEADER = f"""\
# The time zones in which a phone number may lie, by prefix: `<digits> <zone>[,<zone>...]`, the longest prefix wins.
# Made from the data of the Python package phonenumbers {__version__}, without the prefixes that say nothing new.
# Copyright The Libphonenumber Authors; Python port by David Drysdale. Licence: Apache-2.0, see NOTICE.
# Do not edit. To make it anew: pip install phonenumbers && python3 actors/rules/src/zone/generate.py
"""

# Area codes laid over the areas of others, of which the source knows less than of these, or nothing.
OVERLAYS = {
    "1208": "1986", "1250": "1236 1257 1672 1778", "1270": "1364", "1306": "1474", "1309": "1861", "1313": "1679",
    "1318": "1457", "1334": "1483", "1407": "1689", "1418": "1367 1581", "1423": "1729", "1440": "1436", "1507": "1924",
    "1530": "1837", "1541": "1458", "1559": "1357", "1662": "1471", "1709": "1879", "1713": "1621", "1716": "1624", "1812": "1930",
    "1850": "1448",
}  # fmt: skip


def parent(prefix: str, known: dict[str, list[str]]) -> list[str]:
    """What the longest known shorter prefix says; empty if there is none."""
    shorter = (prefix[:length] for length in range(len(prefix) - 1, 0, -1))
    return next((known[each] for each in shorter if each in known), [])


def of_area_codes(known: dict[str, list[str]]) -> dict[str, list[str]]:
    """North American prefixes, an area code and longer: all zones of the prefixes that begin with each.

    The source gives an area code that straddles a border one zone, and the others to prefixes of exchanges. An exchange
    that it does not know may lie on either side. What is laid over another area code rings wherever that one does.
    """
    overlays = {overlay: base for base, overlays in OVERLAYS.items() for overlay in overlays.split()}
    area_codes = {prefix[:4] for prefix in known if prefix[0] == "1" and len(prefix) >= 4} | set(overlays)
    prefixes = area_codes | {prefix for prefix in known if prefix[:4] in area_codes}
    zones: dict[str, set[str]] = {prefix: set() for prefix in prefixes}
    for prefix, names in known.items():
        for length in range(4, len(prefix) + 1):
            if prefix[:length] in zones:
                zones[prefix[:length]].update(names)
    for overlay, base in overlays.items():
        for prefix in prefixes:
            if prefix.startswith(overlay):
                zones[prefix].update(zones[base])
    return {prefix: sorted(names) for prefix, names in zones.items()}


def table() -> dict[str, list[str]]:
    """Each prefix that says something its parent does not. Parents sort before their children: they come first."""
    source = {prefix: sorted(set(names) - {UNKNOWN_TIMEZONE}) for prefix, names in TIMEZONE_DATA.items()}
    source |= of_area_codes(source)
    known: dict[str, list[str]] = {}
    for prefix, zones in sorted(source.items()):
        if zones and zones != parent(prefix, known):
            known[prefix] = zones
    return known


def main() -> None:
    lines = [f"{prefix} {','.join(zones)}\n" for prefix, zones in table().items()]
    target = Path(__file__).with_name("prefixes.txt")
    target.write_text(HEADER + "".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
