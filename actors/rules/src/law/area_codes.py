"""Writes area_codes.txt, the table of North American area codes and the states or provinces that places.rs reads.

    pip install phonenumbers
    python3 actors/rules/src/law/area_codes.py
"""

from collections import defaultdict
from pathlib import Path

from phonenumbers import __version__
from phonenumbers.geodata import GEOCODE_DATA

HEADER = f"""\
# The states and provinces in which the numbers of an area code lie: `<place>[,<place>...]: <codes>`.
# Made from the geocoding data of the Python package phonenumbers {__version__}, and from what area_codes.py says itself of the codes
# that are not in it. Copyright The Libphonenumber Authors; Python port by David Drysdale. Licence: Apache-2.0, see NOTICE.
# Do not edit. To make it anew: pip install phonenumbers && python3 actors/rules/src/law/area_codes.py
"""

NAMES = {
    "Alabama": "US-AL", "Alaska": "US-AK", "Arizona": "US-AZ", "Arkansas": "US-AR", "California": "US-CA",
    "Colorado": "US-CO", "Connecticut": "US-CT", "Delaware": "US-DE", "Florida": "US-FL", "Georgia": "US-GA",
    "Hawaii": "US-HI", "Idaho": "US-ID", "Illinois": "US-IL", "Indiana": "US-IN", "Iowa": "US-IA", "Kansas": "US-KS",
    "Kentucky": "US-KY", "Louisiana": "US-LA", "Maine": "US-ME", "Maryland": "US-MD", "Massachusetts": "US-MA",
    "Michigan": "US-MI", "Minnesota": "US-MN", "Mississippi": "US-MS", "Missouri": "US-MO", "Montana": "US-MT",
    "Nebraska": "US-NE", "Nevada": "US-NV", "New Hampshire": "US-NH", "New Jersey": "US-NJ", "New Mexico": "US-NM",
    "New York": "US-NY", "North Carolina": "US-NC", "North Dakota": "US-ND", "Ohio": "US-OH", "Oklahoma": "US-OK",
    "Oregon": "US-OR", "Pennsylvania": "US-PA", "Rhode Island": "US-RI", "South Carolina": "US-SC",
    "South Dakota": "US-SD", "Tennessee": "US-TN", "Texas": "US-TX", "Utah": "US-UT", "Vermont": "US-VT",
    "Virginia": "US-VA", "Washington State": "US-WA", "Washington D.C.": "US-DC", "West Virginia": "US-WV",
    "Wisconsin": "US-WI", "Wyoming": "US-WY", "Puerto Rico": "US-PR",
    "Alberta": "CA-AB", "British Columbia": "CA-BC", "Manitoba": "CA-MB", "New Brunswick": "CA-NB",
    "Newfoundland and Labrador": "CA-NL", "Nova Scotia": "CA-NS", "Ontario": "CA-ON", "Quebec": "CA-QC",
    "Saskatchewan": "CA-SK",
}  # fmt: skip

# What the source does not say, or says of cities only: by the assignments of NANPA and of the Canadian numbering administrator.
# Yukon, the Northwest Territories and Nunavut share one code, as do Nova Scotia and Prince Edward Island.
KNOWN = {
    "US-AK": "907", "US-AL": "483", "US-AS": "684", "US-AZ": "480 520 602 623 928", "US-CA": "209 279 341 350 357 369 628 657 669 738 747 820 837 840",
    "US-CO": "748 983", "US-CT": "475 959", "US-DC": "202 771", "US-FL": "324 448 645 656 689 728", "US-GA": "470 678 943", "US-GU": "671",
    "US-IA": "319 515 563 641 712", "US-ID": "208 986", "US-IL": "447 464 730 861", "US-IN": "463 930", "US-KY": "364", "US-LA": "457",
    "US-MA": "339 351 413 508 617 774 781 857 978", "US-MD": "227 240 301 410 443 667", "US-MI": "679 947", "US-MN": "924", "US-MO": "235 557 975",
    "US-MP": "670", "US-MS": "471 769", "US-NC": "472 743 980 984", "US-ND": "701", "US-NE": "531", "US-NJ": "640", "US-NV": "725",
    "US-NY": "329 332 347 363 516 624 646 680 718 838 917 929 934", "US-OH": "220 283 326 380 436 567", "US-OK": "572 539", "US-OR": "458 971",
    "US-PA": "223 267 272 445 484 582 835 878", "US-PR": "787 939", "US-SC": "821 839 854", "US-TN": "629 729",
    "US-TX": "346 430 469 621 682 726 737 832 945", "US-UT": "385", "US-VA": "571 686 804 826 948", "US-VI": "340", "US-WA": "360 564",
    "US-WI": "274 353 534", "US-WV": "304 681",
    "CA-AB": "368 403 587 780 825", "CA-BC": "236 250 257 604 672 778", "CA-MB": "204 431 584", "CA-NB": "428 506", "CA-NL": "709 879",
    "CA-NS": "782 902", "CA-PE": "782 902", "CA-NT": "867", "CA-NU": "867", "CA-YT": "867",
    "CA-ON": "226 249 289 343 365 382 416 437 519 548 613 647 683 705 742 753 807 905 942", "CA-QC": "263 354 367 418 438 450 468 514 579 581 819 873",
    "CA-SK": "306 474 639",
}  # fmt: skip


def state(name: str) -> str | None:
    """`Phoenix, AZ`, `New Jersey`."""
    last = name.rsplit(", ", 1)[-1]
    both = {f"US-{last}", f"CA-{last}"} & set(NAMES.values()) if len(last) == 2 and last.isupper() else set()
    return NAMES.get(name) or NAMES.get(last) or (both.pop() if len(both) == 1 else None)


def table() -> dict[str, set[str]]:
    codes: dict[str, set[str]] = defaultdict(set)
    for prefix, names in GEOCODE_DATA.items():
        if prefix.startswith("1") and len(prefix) >= 4 and (place := state(names.get("en", ""))):
            codes[prefix[1:4]].add(place)
    for place, known in KNOWN.items():
        for code in known.split():
            codes[code].add(place)
    return codes


def main() -> None:
    by_places: dict[str, list[str]] = defaultdict(list)
    for code, places in table().items():
        by_places[",".join(sorted(places))].append(code)
    lines = [f"{places}: {' '.join(sorted(codes))}\n" for places, codes in sorted(by_places.items())]
    Path(__file__).with_name("area_codes.txt").write_text(HEADER + "".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
