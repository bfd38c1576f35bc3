"""Without scikit-learn or PyTorch, one sentence says what to install."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rankdp.errors import Unsupported

pytestmark = pytest.mark.slow

CODE = """
import sys
sys.modules["sklearn"] = None
import numpy as np
from rankdp import RankdpError
from rankdp import learn as learning
try:
    learning.LinearPairwiseRanker().fit(np.ones((4, 1)), np.array([[0, 1]] * 4))
except RankdpError as refusal:
    print(refusal)
"""


def test_a_missing_scikit_learn_is_named():
    said = subprocess.check_output([sys.executable, "-c", CODE], encoding="utf-8").strip()
    assert said == "learning needs scikit-learn: pip install 'rankdp[learn]'"


def test_a_missing_pytorch_is_named(monkeypatch):
    pytest.importorskip("sklearn", reason="learning needs scikit-learn")
    from rankdp.learn import towers

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(towers, "import_module", missing)
    with pytest.raises(Unsupported, match=r"two towers need PyTorch: pip install 'rankdp\[learn\]'"):
        towers.TwoTowerRanker().fit(np.ones((5, 1)), np.array([[0, 1]] * 5))
