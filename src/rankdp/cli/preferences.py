"""`rankdp preferences`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rankdp.cli.options import (
    PATH,
    charged,
    force_option,
    need,
    option,
    rehearse,
    standard_input,
    standard_output,
    voter_column_option,
)
from rankdp.cli.terminal import many, say


@click.command()
@click.argument("source", metavar="IN", type=PATH, callback=standard_input)
@click.argument("target", metavar="OUT", type=PATH)
@option("--epsilon -e", "Privacy of one label, or with --max-per-voter of all labels of one rater together.", "NUMBER")
@option(
    "--max-per-voter",
    "Protect all labels of a rater together: the first K rows of each are used, the others dropped.",
    "K",
    int,
)
@voter_column_option
@option("--labels", "The two values of a label column, for the first and the second answer.", "A,B", default="a,b")
@option("--keep", "Another column to write as it is; may be repeated. All others are left out.", "NAME", multiple=True)
@charged
@rehearse
@option("--json as_json", "Print a summary as JSON.", is_flag=True)
@force_option
def preferences(source: Path, target: Path, labels: str, as_json: bool, **options: Any) -> None:
    """Make the labels of preference pairs private.

    IN has the columns prompt, chosen, rejected, or prompt, response_a, response_b, label (CSV, JSON Lines, Parquet).
    Every label is swapped with a probability that epsilon fixes. OUT.release.json states it: training on OUT needs it
    to correct for the noise. Prompts and answers are not protected.

    \b
    Example:
      rankdp preferences pairs.jsonl private.jsonl --epsilon 2
    """
    from rankdp.publish.preferences import privatize_preferences_file

    need(f"rankdp preferences {source} {target} --epsilon 2", epsilon=("--epsilon NUMBER", options["epsilon"]))
    with standard_output(target, source) as written:
        release = privatize_preferences_file(source, written, labels=tuple(labels.split(",")), **options)  # type: ignore[arg-type]
    facts = release.provenance.parameters
    if as_json:
        click.echo(json.dumps({"out": str(target), **release.to_dict()}, indent=2))
        return
    say(f"wrote {target}: {many(facts['preferences'], 'preference')}")
    if facts["rows_dropped"]:
        say(f"{many(facts['rows_dropped'], 'row')} dropped: raters with more than {facts['max_per_voter']}")
    if facts["columns_left_out"]:
        say(f"columns left out, because nothing protects them: {', '.join(facts['columns_left_out'])}")
    say(f"each label is swapped with probability {facts['flip_probability']:.4g}: set label_smoothing in training")
    say(release.explain())
