"""Writes prefixes.txt, the table of phone-number prefixes and time zones that mod.rs reads.

    pip install phonenumbers
    python3 actors/src/zone/generate.py
"""

from pathlib import Path

from phonenumbers import __version__
from phonenumbers.timezone import UNKNOWN_TIMEZONE
from phonenumbers.tzdata import TIMEZONE_DATA

HEADER = f"""\
# The time zones in which a phone number may lie, by prefix: `<digits> <zone>[,<zone>...]`, the longest prefix wins.
# Made from the data of the Python package phonenumbers {__version__}, without the prefixes that say nothing new.
# Copyright The Libphonenumber Authors; Python port by David Drysdale. Licence: Apache-2.0, see NOTICE.
# Do not edit. To make it anew: pip install phonenumbers && python3 actors/src/zone/generate.py
"""


def parent(prefix: str, known: dict[str, list[str]]) -> list[str]:
    """What the longest known shorter prefix says; empty if there is none."""
    shorter = (prefix[:length] for length in range(len(prefix) - 1, 0, -1))
    return next((known[each] for each in shorter if each in known), [])


def table() -> dict[str, list[str]]:
    """Each prefix that says something its parent does not. Parents sort before their children: they come first."""
    known: dict[str, list[str]] = {}
    for prefix, names in sorted(TIMEZONE_DATA.items()):
        zones = sorted(set(names) - {UNKNOWN_TIMEZONE})
        if zones and zones != parent(prefix, known):
            known[prefix] = zones
    return known


def main() -> None:
    lines = [f"{prefix} {','.join(zones)}\n" for prefix, zones in table().items()]
    target = Path(__file__).with_name("prefixes.txt")
    target.write_text(HEADER + "".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
