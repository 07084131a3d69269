"""Every sampling scheme, and the guarantee of the secret order, over the real services."""

import pytest

from tests.protocol.chance import agreement, confirmed
from tests.protocol.world import World
from veiltab.common.release.guarantees import guaranteed_epsilon
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
