"""Normal error plus Laplace noise: closed forms against quadrature and simulation."""

import numpy as np
import pytest
from scipy import integrate, stats

from rankdp.errors import InputError, Unsupported
from rankdp.theory.noises.families import Gaussian, Laplace, NormalLaplace

pytestmark = pytest.mark.slow

shares = pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])


def convolved(share, x, survival, normal):
    """P(Z + rest > x) by quadrature over the normal part."""
    kinks = sorted({x, 0.0})
    value, _ = integrate.quad(
        lambda z: stats.norm.pdf(z, scale=normal) * survival(x - z), -12 * normal, 12 * normal, points=kinks, limit=400
    )
    return value


@shares
@pytest.mark.parametrize("x", [-2.0, 0.0, 0.3, 1.0, 4.0])
def test_survival_is_the_convolution(share, x):
    normal, scale = np.sqrt(1 - share), np.sqrt(share / 2)
    expected = convolved(share, x, lambda y: stats.laplace.sf(y, scale=scale), normal)
    assert NormalLaplace(share).survival(x) == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert NormalLaplace(share).cdf(-x) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@shares
@pytest.mark.parametrize("d", [0.0, 0.2, 1.0, 5.0])
def test_difference_is_the_convolution_of_both(share, d):
    normal, scale = np.sqrt(2 * (1 - share)), np.sqrt(share / 2)

    def survival(y):
        tail = (0.5 + abs(y) / (4 * scale)) * np.exp(-abs(y) / scale)
        return tail if y > 0 else 1 - tail

    expected = convolved(share, d, survival, normal)
    assert NormalLaplace(share).difference_survival(d) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@shares
def test_density_quantile_and_excess_belong_together(share):
    noise, x = NormalLaplace(share), np.array([-1.5, 0.1, 0.7, 3.0])
    step = 1e-5
    np.testing.assert_allclose(
        (noise.survival(x - step) - noise.survival(x + step)) / (2 * step), noise.density(x), rtol=1e-5
    )
    np.testing.assert_allclose(
        (noise.excess(x - step) - noise.excess(x + step)) / (2 * step), noise.survival(x), rtol=1e-5, atol=1e-9
    )
    np.testing.assert_allclose(noise.quick_excess(x), noise.excess(x), rtol=1e-8)
    np.testing.assert_allclose(noise.cdf(noise.quantile([0.01, 0.3, 0.975])), [0.01, 0.3, 0.975], rtol=1e-9)
    assert integrate.quad(lambda y: float(noise.density(y)) * y * y, 0, 40, limit=300)[0] * 2 == pytest.approx(1)


def test_ends_are_the_plain_families():
    d = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(NormalLaplace(1e-6).difference_survival(d), Gaussian().difference_survival(d), rtol=1e-4)
    np.testing.assert_allclose(
        NormalLaplace(1 - 1e-7).difference_survival(d), Laplace().difference_survival(d), rtol=1e-3
    )
    assert NormalLaplace(1e-6).mean_difference == pytest.approx(Gaussian().mean_difference, rel=1e-4)
    assert NormalLaplace(1 - 1e-7).mean_difference == pytest.approx(Laplace().mean_difference, rel=1e-3)


def test_draws_have_the_stated_law():
    noise = NormalLaplace(0.6)
    drawn = noise.sample(20_000, np.random.default_rng(5))
    assert stats.kstest(drawn, noise.cdf).pvalue > 1e-4
    halved = drawn / 2
    assert stats.kstest(halved, noise.cdf).pvalue < 1e-4


def test_refusals():
    for share in (0, 1, -1, float("nan")):
        with pytest.raises(InputError, match="laplace_share must be a number above 0 and below 1"):
            NormalLaplace(share)
    with pytest.raises(Unsupported, match="protects nobody"):
        NormalLaplace(0.5).renyi(2, 1)
    with pytest.raises(Unsupported, match="protects nobody"):
        NormalLaplace(0.5).delta(1, 1)
