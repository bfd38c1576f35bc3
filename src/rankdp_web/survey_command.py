"""`rankdp survey`: rankings collected with the noise added in the respondent's browser."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdp.cli.options import PATH, charged, choice, names_in, option, options, sizes_of_tiers
from rankdp.cli.terminal import reporting, say
from rankdp.errors import InputError, Unsupported

if TYPE_CHECKING:
    from rankdp.privacy.ledger import Ledger
    from rankdp.report.document import Report
    from rankdp_web.survey_database import Survey, SurveyDatabase

_ADDRESS = "http://127.0.0.1:8000"
_DATABASE = "surveys.db"

one_survey = options(
    click.argument("database", metavar="DATABASE"),
    option("--id survey_id", "Which survey, if the database has several.", "ID"),
)
address_option = option(
    "--address", "Where respondents reach the server, for the links that are shown.", "URL", default=_ADDRESS
)


@click.group()
def survey() -> None:
    """Collect rankings; respondents' own devices add the noise.

    DATABASE is a file, or the address of a PostgreSQL database such as postgresql+psycopg://user@host/name. Needs the
    extra web: pip install 'rankdp[web]'
    """


@contextmanager
def _with_web() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        raise Unsupported(f"surveys need the package {missing.name}: pip install 'rankdp[web]'") from None


@contextmanager
def _opened(database: str, *, create: bool = False) -> Iterator[SurveyDatabase]:
    with _with_web():
        from rankdp_web.survey_database import SurveyDatabase
    opened = SurveyDatabase(database, create=create)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def _chosen(database: str, survey_id: str | None) -> Iterator[tuple[SurveyDatabase, Survey]]:
    with _opened(database) as opened:
        from rankdp_web.surveys import the_survey

        yield opened, the_survey(opened, survey_id)


@survey.command()
@click.argument("database", metavar="DATABASE")
@option("--title", "What respondents read first.", required=True)
@option("--items", "Text file with 2 to 100 items, one per line.", "FILE", PATH, callback=names_in, required=True)
@option("--epsilon -e", "Privacy of every ranking: smaller is more private.", "NUMBER", required=True)
@choice(
    "--protect",
    ["ranking", "position"],
    help="What epsilon protects: the whole answer, or one item's position in it.",
)
@option("--question", "A sentence or two below the title.", default="", show_default=False)
@option(
    "--rank-top",
    "Ask for the best NUMBER items only; which ones they are is protected too.",
    "NUMBER",
    type=int,
    default=0,
    show_default=False,
)
@option(
    "--mechanism",
    "How browsers draw the noise: kendall-ball (up to 60 items), optimal (up to 5), reinsertion, tiers or "
    "offset-tiers; auto takes what gives the most precise results.",
    "NAME",
    default="auto",
)
@option("--tiers", "With tiers: items in each tier, such as 10,90.", "SIZES", callback=sizes_of_tiers)
@option("--invited", "Take answers with an invitation only (see rankdp survey invite).", is_flag=True)
@option("--organiser", "Who asks; shown above the title.", default="", show_default=False)
@option("--contact", "How respondents reach whoever asks.", default="", show_default=False)
@option("--legal", "A legal notice below the survey.", default="", show_default=False)
@option("--closing", "The last day on which answers are taken (UTC).", "YYYY-MM-DD", default="", show_default=False)
@option("--kiosk", "For a device that many people share: keep nothing and start again after each answer.", is_flag=True)
@option("--listed", "Name the survey on the start page of the server.", is_flag=True)
@option("--frame frames", "A site that may show the results in a frame; may be repeated.", "URL", multiple=True)
@option(
    "--pictures",
    "Directory of PNG, JPEG or WebP files, each named like its item (Park.jpg for Park).",
    "DIRECTORY",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@option("--private-results", "Show results only to people with the link that is printed.", is_flag=True)
@option(
    "--weak-promise-accepted",
    "Allow an epsilon above 10; respondents then read that it offers almost no protection.",
    is_flag=True,
)
@address_option
@charged
def create(
    database: str,
    private_results: bool,
    address: str,
    pictures: Path | None,
    ledger: Ledger | None,
    **asked: Any,
) -> None:
    """Open a survey in DATABASE.

    \b
    Example:
      rankdp survey create survey.db --title "Where shall we eat?" --items places.txt --epsilon 2
    """
    with _with_web():
        from rankdp_web.surveys import guarantee_of, mechanism_of, new_survey, open_survey
    key = secrets.token_urlsafe(16) if private_results else ""
    made, files = new_survey(results_key=key, pictures=_pictures(pictures), **asked)
    with _opened(database, create=True) as opened:
        open_survey(opened, made, files, ledger)
    click.echo(f"survey   {made.id}")
    click.echo(f"answers  {_link(address, made)}{'#INVITATION' if made.invited else ''}")
    click.echo(f"results  {_link(address, made)}/results{f'?key={key}' if key else ''}")
    say(f"mechanism {made.mechanism}, epsilon {made.epsilon}")
    say(guarantee_of(made).explain())
    if made.protect == "ranking" and not made.mechanism.startswith(("kendall-ball", "top-ball")):
        used = mechanism_of(made)
        say(
            f"{made.mechanism} protects the whole answer by an epsilon of {float(used.epsilon):.3g} for one position, "
            f"and keeps {used.expected_concordance():.1%} of pairs in order: kendall-ball, which keeps most, is for up "
            "to 60 items"
        )
    say(f"next: rankdp survey serve {opened.name}")


@survey.command()
@click.argument("database", metavar="[DATABASE]", default=_DATABASE)
@option("--host", "Address to listen on; only this machine by default.", default="127.0.0.1")
@option("--port", "Port to listen on.", default=8000, type=click.IntRange(0, 65535))
@option("--certificate", "Certificate for https, a PEM file with its chain; needs --key.", "FILE", PATH)
@option("--key", "Private key of the certificate, a PEM file.", "FILE", PATH)
@option(
    "--trusted-proxy",
    "Address of a proxy, such as 127.0.0.1, that is believed about https and visitors' addresses.",
    "ADDRESS",
)
@option("--address", "Where respondents reach the server, if the organiser's browser reaches it elsewhere.", "URL")
@option(
    "--tickets-per-minute",
    "How many pages of open surveys a network address gets per minute.",
    "NUMBER",
    type=click.IntRange(1),
    default=60,
)
def serve(
    database: str,
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    trusted_proxy: str | None,
    address: str | None,
    tickets_per_minute: int,
) -> None:
    """Serve surveys until interrupted.

    Prints the private link of the organiser's page, where surveys are created, shared, watched and closed. DATABASE is
    created if it does not exist; without it, surveys.db in this directory is used. Respondents need https: give
    --certificate and --key, or put the server behind a proxy and name it with --trusted-proxy.
    """
    pair = _certificate(certificate, key)
    if address is not None and not address.startswith(("https://", "http://")):
        raise InputError(f"--address must begin with https:// or http://, got {address}")
    for each in (trusted_proxy or "").split(","):
        _check_proxy(each)
    with _opened(database, create=True) as opened:
        import uvicorn

        from rankdp_web.pages import listen
        from rankdp_web.survey_app import server_config

        listening = listen(host, port)
        port, organiser_key = listening.getsockname()[1], secrets.token_urlsafe(32)
        shown = _certified(certificate) if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        here = (address or f"{'https' if pair else 'http'}://{shown}:{port}").rstrip("/")
        click.echo(f"{here}/organiser?key={organiser_key}")
        say(f"the link is for you alone; surveys are in {opened.name}; press Ctrl+C to end")
        for made in _in_order(opened):
            say(f"{made.title}: {_link(here, made)}{'' if made.open else ' (closed)'}")
        config = server_config(
            opened,
            host,
            port,
            certificate=pair,
            trusted_proxy=trusted_proxy or "",
            organiser_key=organiser_key,
            address=address or "",
            tickets_per_minute=tickets_per_minute,
        )
        with suppress(KeyboardInterrupt):  # that is how it ends
            uvicorn.Server(config).run(sockets=[listening])


def _certificate(certificate: Path | None, key: Path | None) -> tuple[str, str] | None:
    """The two files, after a look at whether they belong together."""
    import ssl

    if (certificate is None) != (key is None):
        raise InputError("--certificate and --key must be given together")
    if certificate is None or key is None:
        return None
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as problem:  # ssl.SSLError is one
        reason = problem.strerror or str(problem)
        raise InputError(f"--certificate {certificate} and --key {key} must be a PEM pair ({reason})") from None
    return str(certificate), str(key)


def _certified(certificate: Path | None) -> str:
    """The name that a certificate is for, if it has one that others can use."""
    from cryptography import x509

    found: list[str] = []
    if certificate is not None:
        with suppress(x509.ExtensionNotFound):
            (own, *_) = x509.load_pem_x509_certificates(certificate.read_bytes())
            names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            found = names.get_values_for_type(x509.DNSName)
    return next((name for name in found if "*" not in name and name != "localhost"), "127.0.0.1")


def _check_proxy(address: str) -> None:
    import ipaddress

    try:
        if address:
            ipaddress.ip_network(address.strip())
    except ValueError:
        raise InputError(f"--trusted-proxy must be an address such as 127.0.0.1, got {address}") from None


@survey.command("list")
@click.argument("database", metavar="[DATABASE]", default=_DATABASE)
@address_option
def list_surveys(database: str, address: str) -> None:
    """List the surveys in DATABASE.

    One line each: id, state, answers, day of opening, title and link, separated by tabs.
    """
    with _opened(database) as opened:
        for made in _in_order(opened):
            state = "open" if made.open else "closed"
            click.echo(
                "\t".join((made.id, state, str(opened.count(made.id)), made.day, made.title, _link(address, made)))
            )


def _pictures(directory: Path | None) -> dict[str, bytes]:
    """The files of a directory by their names without the ending."""
    files = [] if directory is None else sorted(path for path in directory.iterdir() if path.is_file())
    return {path.stem: path.read_bytes() for path in files}


@survey.command()
@click.argument("address", metavar="URL")
def verify(address: str) -> None:
    """Check that the server at URL sends what this version would.

    URL is the link to the page of a survey. Its tables, texts and scripts are computed again from the facts that the
    page states; the exit code is 1 if anything differs.
    """
    with _with_web():
        from rankdp_web.survey_page import verify as differences
    if found := differences(address):
        raise InputError(f"{address}: {'; '.join(found)}")
    say(f"{address}: tables, texts and scripts are the same as in this version of rankdp")


@survey.command()
@one_survey
@reporting
def results(database: str, survey_id: str | None) -> Report:
    """Show what the answers say together.

    While the survey is open, results change by 32 answers or more at once and leave out 32 to 63 answers.
    """
    with _chosen(database, survey_id) as (opened, made):
        from rankdp_web.survey_results import survey_results
        from rankdp_web.surveys import collected

        return survey_results(made, collected(opened, made)).report


@survey.command()
@one_survey
@click.argument("target", metavar="OUT", type=PATH)
def export(database: str, survey_id: str | None, target: Path) -> None:
    """Write the synthetic rankings to OUT (CSV, Parquet or PrefLib).

    While the survey is open, these are the rankings that its results show. OUT.release.json states the guarantee;
    aggregate and learn read both.
    """
    with _chosen(database, survey_id) as (opened, made):
        from rankdp_web.surveys import export_survey

        say(f"{target}: {export_survey(opened, made, target):,} synthetic rankings")


@survey.command()
@one_survey
@option("--number", "How many invitations.", type=int, required=True)
@option("--output -o", "Write the links to FILE instead of the terminal.", "FILE", PATH)
@address_option
def invite(database: str, survey_id: str | None, number: int, output: Path | None, address: str) -> None:
    """Make one-time links for a survey that was created with --invited.

    Only hashes of the links are stored: they cannot be shown again.
    """
    from rankdp.data.atomic import NewFile

    with _chosen(database, survey_id) as (opened, made):
        from rankdp_web.surveys import invite as new_tokens

        if output is None:
            for token in new_tokens(opened, made, number):
                click.echo(f"{_link(address, made)}#{token}")
            return
        with NewFile(output, private=True) as file:
            links = [f"{_link(address, made)}#{token}\n" for token in new_tokens(opened, made, number)]
            file.write("".join(links).encode())
        say(f"{output}: {number:,} invitations")


@survey.command()
@one_survey
def close(database: str, survey_id: str | None) -> None:
    """Take no more answers, and put all answers into random order."""
    with _chosen(database, survey_id) as (opened, made):
        from rankdp_web.survey_database import BATCH

        opened.finish(made.id)
        count, shown = opened.count(made.id), opened.count(made.id, shown=True)
        say(f"survey {made.id} is closed with {count:,} answers")
        if shown < count:
            say(f"its results leave out {count - shown}: they would change by fewer than {BATCH}; export writes all")


@survey.command()
@one_survey
@option("--yes", "Do not ask.", is_flag=True)
def delete(database: str, survey_id: str | None, yes: bool) -> None:
    """Delete a survey with all its answers. What was charged to a ledger stays charged."""
    with _chosen(database, survey_id) as (opened, made):
        if not yes:
            click.confirm(f"Delete {made.title!r} and its {opened.count(made.id):,} answers?", abort=True, err=True)
        opened.delete(made.id)
        say(f"survey {made.id} is deleted")


def _in_order(database: SurveyDatabase) -> list[Survey]:
    return sorted(database.surveys(), key=lambda each: (each.day, each.title))


def _link(address: str, made: Survey) -> str:
    return f"{address.rstrip('/')}/s/{made.id}"
