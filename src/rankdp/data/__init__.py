"""Rankings as data: one frozen type, checked once, and the files and tables it comes from and goes to."""

from __future__ import annotations

from rankdp.data.files import RankingsWriter, open_rankings, open_writer
from rankdp.data.frames import RankingsReader
from rankdp.data.orders import Ties
from rankdp.data.rankings import Rankings

__all__ = ["Rankings", "RankingsReader", "RankingsWriter", "Ties", "open_rankings", "open_writer"]
