"""Writes the catalogue that ships with Dovetail, from packages that carry such facts.

    python tools/generate_catalog.py            # writes embedded/us-east-1.json
    python tools/generate_catalog.py --check    # exits 1 if the file is not what would be written

Instance types and zonal offerings come from moto's bundled answers of EC2, on-demand prices from
apache-libcloud's table `ec2_linux`. Neither carries spot prices: those are synthetic, and `source`
says so. The result depends on the versions of the two packages and on nothing else; `date` is the
day of the price table.
"""

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata, util
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from shared.instance_types.building import build_catalog, format_catalog  # noqa: E402
from shared.instance_types.catalog import EMBEDDED_REGION, load_catalog  # noqa: E402
from shared.instance_types.price_book import repaired_prices  # noqa: E402
from shared.instance_types.summary import summarize  # noqa: E402

PRICE_TABLE: Final = "ec2_linux"
# One of the two columns with the most rows above zero; most types cost the same in us-east-1.
PRICE_REGION: Final = "us-west-2"
TARGET: Final = ROOT / "shared" / "instance_types" / "embedded" / f"{EMBEDDED_REGION}.json"

# Synthetic spot prices in thousandths: of the on-demand price by type, of that by zone.
_SPOT_SHARE: Final = (280, 620)
_SPOT_ZONE: Final = (800, 1200)


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or with `--check` compare it; return the exit status."""
    parser = argparse.ArgumentParser(description="Writes the catalogue that ships with Dovetail.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if different")
    parser.add_argument(
        "--output", type=Path, default=TARGET, help="the file (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    text = generate()
    if options.check:
        if not options.output.is_file() or options.output.read_text(encoding="utf-8") != text:
            print(f"{options.output} is out of date; run python tools/generate_catalog.py")
            return 1
        return 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output}: {len(text)} bytes; {summarize(load_catalog(text))}")
    return 0


def generate() -> str:
    """Return the text of the embedded catalogue."""
    moto = _package_folder("moto") / "ec2" / "resources"
    facts: dict[str, dict[str, Any]] = _read_gzip(moto / "instance_types.json.gz")
    zones = moto / "instance_type_offerings" / "availability-zone"
    rows: list[dict[str, str]] = _read_gzip(zones / f"{EMBEDDED_REGION}.json.gz")
    offerings = sorted((row["InstanceType"], row["Location"]) for row in rows)
    prices, day = _price_table()
    document = build_catalog(
        facts=facts.values(),
        offerings=offerings,
        on_demand_prices=prices,
        spot_prices=_spot_prices(facts.values(), prices, offerings),
        region=EMBEDDED_REGION,
        source=(
            f"types and zones: moto {metadata.version('moto')} ({EMBEDDED_REGION}); "
            f"on-demand prices: apache-libcloud {metadata.version('apache-libcloud')} "
            f"{PRICE_TABLE} {PRICE_REGION}, repaired; "
            "spot prices: synthetic, 28-62 % of on-demand, +-20 % by zone"
        ),
        date=day,
        repair=True,
    )
    return format_catalog(document)


def _price_table() -> tuple[dict[str, float], str]:
    """Return dollars per hour by type (zeros and outliers as they are) and the table's date."""
    path = _package_folder("libcloud") / "data" / "pricing.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    prices = {
        name: row[PRICE_REGION]
        for name, row in table["compute"][PRICE_TABLE].items()
        if PRICE_REGION in row
    }
    return prices, datetime.fromtimestamp(table["updated"], tz=UTC).date().isoformat()


def _spot_prices(
    facts: Iterable[Mapping[str, Any]],
    prices: Mapping[str, float],
    offerings: Iterable[tuple[str, str]],
) -> dict[tuple[str, str], str]:
    """Return made-up spot prices, in dollars per hour: a share by type, varied by zone."""
    on_demand = repaired_prices(facts, prices)
    spot = {}
    for name, zone in offerings:
        if name in on_demand:
            share = _pick(name, _SPOT_SHARE) * _pick(f"{name}/{zone}", _SPOT_ZONE)
            micros = max(1, on_demand[name].micros_per_hour * share // 10**6)
            spot[name, zone] = f"{micros}e-6"
    return spot


def _pick(seed: str, bounds: tuple[int, int]) -> int:
    """Return a whole number within the bounds, the same for the same seed on any machine."""
    low, high = bounds
    digest = hashlib.sha256(seed.encode()).digest()
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def _package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it (moto's costs a second)."""
    spec = util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is not installed; run make setup")
    return Path(spec.origin).parent


def _read_gzip(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return json.load(stream)


if __name__ == "__main__":
    sys.exit(main())
