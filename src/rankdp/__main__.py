"""``python -m rankdp`` is the command ``rankdp``."""

from rankdp.cli import main

main()
