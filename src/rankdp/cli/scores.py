"""`rankdp scores`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import (
    NOISE,
    PATH,
    charged,
    choice,
    encoding_option,
    force_option,
    option,
    rehearse,
    sheet_option,
    standard_input,
    standard_output,
)
from rankdp.cli.terminal import many, say


@click.command()
@click.argument("source", metavar="IN", callback=standard_input, type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@option("--epsilon -e", "Privacy of every score: smaller is more private.", "NUMBER")
@option("--bounds", "Two public numbers that every score lies between, not taken from the data.", "LO HI", nargs=2)
@option("--noise", "Kind of noise to add.", type=NOISE, default="laplace")
@option("--delta", "Above 0 for gaussian, generalized-normal with p above 1, and ball noise.", "NUMBER", default="0")
@option("--p -p", "Shape of generalized-normal or ball noise (inf: a cube).", "NUMBER")
@option("--gamma", "Width of the first stair of (joint-)staircase noise, as a share of the range.", "NUMBER")
@choice(
    "--outside",
    ["refuse", "clip"],
    help="Scores outside the bounds: refuse the file, or move them to the nearest bound.",
)
@option("--clamp-output", "Move noisy scores back into the bounds (costs no privacy).", is_flag=True)
@option("--item-column", "Column with the item names, if not called item, name or id.", "NAME")
@option("--score-column", "Column with the scores, if not called score or value.", "NAME")
@sheet_option
@encoding_option
@charged
@rehearse
@option("--json as_json", "Print a summary as JSON.", is_flag=True)
@force_option
def scores(source: Path, target: Path, as_json: bool, **options: Any) -> None:
    """Add noise to scores, so that every score is protected.

    Reads IN (CSV, JSON, Excel or Parquet) and writes OUT (CSV, Parquet or JSON); the ending of the name decides.
    OUT.release.json states the guarantee.

    \b
    Example:
      rankdp scores grades.csv noisy.csv --epsilon 1 --bounds 0 100
    """
    from rankdp.publish.scores import privatize_scores_file

    with standard_output(target, source) as written:
        release = privatize_scores_file(source, written, **options)
    facts = release.provenance.parameters
    if as_json:
        click.echo(json.dumps({"out": str(target), "rows": facts["scores"], **release.to_dict()}, indent=2))
        return
    say(f"wrote {target}: {many(facts['scores'], 'score')}, {facts['noise']} noise")
    if left_out := facts["columns_left_out"]:
        say(f"columns left out, because nothing protects them: {', '.join(left_out)}")
    low, high = facts["bounds"]
    say(f"noise of standard deviation {facts['standard_deviation']:.3g} on every score, bounds {low:g} to {high:g}")
    say(release.explain())
