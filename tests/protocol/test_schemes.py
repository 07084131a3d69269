"""Every sampling scheme, and the guarantee of the secret order, over the real services."""

import pytest

from tests.protocol.chance import agreement, confirmed
from tests.protocol.world import World
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.modes import Sampling
from veiltab.common.schemes import SCHEMES
from veiltab.researcher.report.plain_data import status_dict

NAMES = ("region", "smoker")


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "wor"])
def test_a_scheme_s_release_agrees_with_the_truth(village: World, scheme: str) -> None:
    truth = village.people.counts(NAMES)

    def release() -> float:
        with village.client() as client:
            asked = client.request(
                NAMES,
                epsilon="3",
                sample=600,
                scheme=scheme,
                stage=800 if "." in scheme else None,
                label=village.label(),
            )
            spec = asked.wait(30).description().table(0)
            assert spec.scheme == scheme
            assert (spec.sample == 600) or scheme == "poisson"
            assert guaranteed_epsilon(spec) <= 3
            facts = status_dict(asked.status())["release"]
            assert isinstance(facts, dict)
            # By exact formulas; what wor gives beside it is never much worse, and the same for wor's best sample.
            assert facts["root_mse"] >= facts["root_mse_of_wor"] * (0.999 if "." in scheme or scheme == "wr" else 0.5)
            return agreement(asked.estimate(), truth)

    assert not confirmed(release)


def test_schemes_that_cannot_go_together_are_refused(village: World) -> None:
    answer = village.ask(NAMES, "--scheme", "wr", "--delta", "1e-6")
    assert answer.code == 2
    assert "certified for wor and poisson" in answer.errors
    answer = village.ask(NAMES, "--scheme", "must.ow", "--sampling", "server")
    assert answer.code == 2
    assert "drawn from a seed" in answer.errors


def test_the_server_samples_what_it_cannot_read(village: World) -> None:
    with village.client() as client:
        asked = client.request(NAMES, epsilon="3", sample=500, sampling=Sampling.SERVER, label=village.label())
        spec = asked.wait(30).description().table(0)
        assert (spec.sample, spec.uploaded_rows) == (500, spec.population + spec.canaries)
        assert spec.canaries > 0
        # The canaries among the rows that it sampled are nobody's data.
        assert 0 < len(asked.rows()) < 500
        assert len(village.published(asked.id)["region"]) == 500
