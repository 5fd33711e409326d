"""Test that the list of architectures is complete, matches the installed version of transformers, and still gives the
correct verdict for a sample of models."""

from __future__ import annotations

import pytest
import transformers

from benchmarks import architectures
from ropebook import results

MEASURED = results.load("architectures")
ROWS = {row["config"]: row for row in MEASURED["rows"]}
# for each verdict and each reason, one model that is quick to build
SAMPLE = [
    "Llama",
    "SmolLM3",
    "Cohere2",
    "Persimmon",
    "Gemma2",
    "HunYuanDenseV1",
    "GraniteSWA",
    "Falcon",
    "Olmo2",
    "GptOss",
]

same_version = pytest.mark.skipif(
    MEASURED["provenance"]["transformers"] != transformers.__version__, reason="measured with another transformers"
)


def test_no_model_takes_a_method_and_gives_other_logits():
    assert len(ROWS) > 200
    for row in ROWS.values():
        for group in architectures.GROUPS:
            verdict = row.get(group, {}).get("verdict")
            assert verdict in ("supported", "refused") or (verdict is None and row["not_tried"])
            if verdict == "supported":
                assert max(row[group]["off"].values()) <= architectures.NEAR
            elif verdict == "refused":
                assert row[group]["why"] in architectures.WHY.values()


@same_version
def test_every_configuration_has_a_row():
    assert {config.__name__ for config in architectures.configurations()} == set(ROWS)


@same_version
@pytest.mark.parametrize("name", SAMPLE)
def test_a_row_is_still_true(name):
    config = getattr(transformers, f"{name}Config")
    found, row = architectures.in_short(architectures.tried(config)), ROWS[f"{name}Config"]
    for group in architectures.GROUPS:
        assert {key: found[group].get(key) for key in ("verdict", "said")} == {
            key: row[group].get(key) for key in ("verdict", "said")
        }
