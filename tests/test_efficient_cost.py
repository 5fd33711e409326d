"""Tests of the cost of each form. The counts by hand are compared with counts of the operations that torch runs."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ropebook import efficient as E
from ropebook.efficient import forms
from ropebook.proofs.measuring import Count
from tests.helpers import random
from tests.rotations import EAGER, LAYOUTS, tables


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_costs_are_what_torch_runs(form, layout, monkeypatch):
    monkeypatch.setattr(forms, "SMALL", 0)  # always use the method for long texts
    tokens, dim, heads = 3, 8, 40
    x = random(1, heads, tokens, dim, dtype=torch.float32)
    cos, sin = tables(range(tokens), dim, dtype=torch.float32)
    table = tokens * dim * (dim if form == "dense" else 4)
    # this form works head by head, and its intermediate results are as small as a table
    if (form, layout) == ("in_place", "half"):
        counts = [count_one_head(x[:, head], cos, sin) for head in range(heads)]
        flops, data, read = (sum(column) for column in zip(*counts, strict=True))
    else:
        with Count(table) as count:
            E.FORMS[form](x, cos, sin, layout)
        flops, data, read = count.flops, count.data, count.tables
    ours = E.rotation_cost(form, dim, heads, layout, bytes_per_element=4)
    assert ours.flops * tokens == flops
    assert ours.data_bytes * tokens == 4 * data
    assert ours.table_bytes * tokens == 4 * read


def test_the_default_of_few_tokens_in_halves():
    x = random(1, 40, 1, 8, dtype=torch.float32)
    with Count(4 * 8) as count:
        E.rotate_eager(x, *tables(range(1), 8, dtype=torch.float32), "half")
    assert (count.flops, count.data, count.tables) == (3 * 8 * 40, 7 * 8 * 40, 2 * 8)


def count_one_head(head, cos, sin):
    # we repeat the head many times, because `Count` can recognise a table only if it is smaller than the data
    many = 50
    x = head[:, None].expand(many, 1, *head.shape[1:]).clone()
    with Count(cos.numel()) as count:
        E.rotate_in_place(x, cos, sin, "half")
    return count.flops / many, count.data / many, count.tables


def test_products_counted_by_torch_itself():
    x = random(1, 5, 3, 8, dtype=torch.float32)
    for form in ("dense", "blocks"):
        with FlopCounterMode(display=False) as counter:
            E.FORMS[form](x, *tables(range(3), 8, dtype=torch.float32))
        assert counter.get_total_flops() == 3 * E.rotation_cost(form, 8, 5).flops


def test_costs_by_hand():
    # In bfloat16, Llama-3-8B has to move at least 20480 bytes per token.
    least = E.rotation_cost("compiled", 128, 40, bytes_per_element=2)
    assert least.data_bytes == 20480
    assert least == E.RotationCost(3 * 128 * 40, 20480, 256)
    assert least.bytes == 20736
    assert least.intensity == 15360 / 20736
    assert E.rotation_cost("dense", 128, 40).flops == 2 * 128 * 128 * 40
    assert E.rotation_cost("compiled", 8, layout="half") == E.RotationCost(24, 64, 32)
    costs = [E.rotation_cost(form, 64, 8, layout) for form in E.FORMS for layout in LAYOUTS]
    assert min(cost.bytes for cost in costs) == E.rotation_cost("compiled", 64, 8).bytes
