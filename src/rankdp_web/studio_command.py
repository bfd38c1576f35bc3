"""`rankdp studio`: pages on this machine for people who do not write commands."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path

import click

from rankdp.cli.options import PATH, option
from rankdp.cli.terminal import say
from rankdp.errors import Unsupported


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@option("--port", "Port to listen on; 0 takes a free one.", default=0, type=click.IntRange(0, 65535))
@option(
    "--directory",
    "Where files are looked for first, and where results go, into a folder rankdp-studio.",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
)
@option(
    "--ledger ledger_file",
    "Budgets that releases are charged to; DIRECTORY/budget.db if not given. It need not exist.",
    "FILE",
    PATH,
)
@option("--no-browser", "Only print the address; do not open it.", is_flag=True)
def studio(file: Path | None, port: int, directory: Path, ledger_file: Path | None, no_browser: bool) -> None:
    """Plan, rehearse and release in a browser.

    FILE is opened at once.

    The address has a random key, and nothing leaves this machine. Needs the extra web: pip install 'rankdp[web]'
    """
    try:
        import uvicorn

        from rankdp_web.pages import listen
        from rankdp_web.studio_app import studio_config
        from rankdp_web.studio_guard import new_key
        from rankdp_web.studio_pages import Studio
    except ModuleNotFoundError as missing:
        raise Unsupported(f"the studio needs the package {missing.name}: pip install 'rankdp[web]'") from None
    listening = listen("127.0.0.1", port)
    port, key, directory = listening.getsockname()[1], new_key(), directory.resolve()
    desk = Studio(directory, (ledger_file or directory / "budget.db").resolve())
    opened = f"&draft={desk.open(str(file.resolve()), {}).id}" if file else ""
    address = f"http://127.0.0.1:{port}/?key={key}{opened}"
    click.echo(address)
    say("the address is for you alone; press Ctrl+C to end")
    if not no_browser:
        webbrowser.open(address)
    config = studio_config(desk, key, port)
    with suppress(KeyboardInterrupt):  # that is how it ends
        uvicorn.Server(config).run(sockets=[listening])
