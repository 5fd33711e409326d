"""Rotations for testing the diagnosis. Some are correct, and others contain one, two or three mistakes taken from bug
reports.

A rotation is built in stages, and each mistake replaces one stage. A function never has two mistakes in the same stage.
"""

import dataclasses
import functools
import itertools
import math

import torch

from ropebook import rope


@dataclasses.dataclass(frozen=True)
class World:
    """The rotation settings that the weights require. All of them are passed to the diagnosis."""

    dim: int
    base: float
    layout: str
    length: int
    rotary_dim: int
    scaled: str = "plain"
    factor: float = 1.0

    @property
    def frequencies(self):
        return _frequencies(self).clone()  # a mistake may change its own

    @property
    def lengthened(self):
        return 0.1 * math.log(self.factor) + 1 if self.scaled == "yarn" else 1.0

    @property
    def declared(self):
        said = {"layout": self.layout, "base": self.base, "length": self.length, "rotary_dim": self.rotary_dim}
        if self.scaled != "plain":
            said |= {"inv_freq": self.frequencies, "attention_factor": self.lengthened}
        return said


@functools.cache
def _frequencies(world):
    plain = rope.inv_freq(world.rotary_dim, world.base)
    if world.scaled == "plain":
        return plain
    if world.scaled == "linear":
        return plain / world.factor
    short = world.length / world.factor
    if world.scaled == "llama3":
        turns = short * plain / (2 * math.pi)
        kept = ((turns - 1) / 3).clamp(0, 1)
    else:
        ends = [
            world.rotary_dim * math.log(short / (beta * 2 * math.pi)) / (2 * math.log(world.base)) for beta in (32, 1)
        ]
        low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), world.rotary_dim - 1)
        pair = torch.arange(len(plain), dtype=torch.float64)
        kept = 1 - ((pair - low) / max(high - low, 1e-3)).clamp(0, 1)
    return plain * (kept + (1 - kept) / world.factor)


class Stages:
    """A correct rotation of q and k, split into stages. Both tensors have shape (batch, heads, seq, dim); positions
    have shape (seq,) or (batch, seq)."""

    def __init__(self, world):
        self.world = world
        self.memory = {}

    def places(self, positions, role, seq):
        return positions.double()

    def theta(self):
        return self.world.frequencies

    def angles(self, places, theta, role):
        return places[..., None] * theta

    def tables(self, angles, role):
        return angles.cos(), angles.sin()

    def turn(self, x, cos, sin, role):
        first, second = rope.split(x, self.world.layout)
        return rope.join(first * cos - second * sin, first * sin + second * cos, self.world.layout)

    def part(self):
        return slice(0, self.world.rotary_dim)

    def lengths(self, x, role):
        return x * self.world.lengthened

    def who(self, one, q, k, v):
        return one(q, "q"), one(k, "k"), v

    def where(self, one, x, role):
        """Rotate a tensor. A mistake may override this method to rearrange the axes first, or to rotate only some heads
        or rows."""
        return one(x, role)

    def __call__(self, q, k, positions):
        return self.all(q, k, None, positions)[:2]

    def all(self, q, k, v, positions):
        def whole(x, role):
            return self.where(inner, x, role)

        def inner(x, role):
            seq = x.shape[-2]
            at = self.places(positions, role, seq)
            if at.ndim == 2:
                at = at[:, None]
            if at.shape[-1] != seq:
                at = at[..., :1] + torch.arange(seq)
            self.memory["places"] = at
            cos, sin = self.tables(self.angles(at, self.theta(), role), role)
            part = self.part()
            turned = self.lengths(self.turn(x[..., part], cos.to(x.dtype), sin.to(x.dtype), role), role)
            return torch.cat((x[..., : part.start], turned, x[..., part.stop :]), -1).to(x.dtype)

        return self.who(whole, q, k, v)


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A mistake: its name, the stage that it replaces, the names that the diagnosis may give it, the source that
    reported it, and a test of whether it has an effect in a given world."""

    name: str
    stage: str
    replace: object
    called: tuple
    source: str
    when: object = lambda world: True


MISTAKES = {}


def collecting(found):
    """Return a decorator that records each mistake in ``found`` under the name of the decorated function."""

    def mistake(stage, called, source, when=lambda world: True):
        def add(function):
            name = function.__name__
            found[name] = Mistake(name, stage, function, tuple(called.split()), source, when)
            return function

        return add

    return mistake


mistake = collecting(MISTAKES)


def long(world):
    return world.length >= 1024


def scaled(*kinds):
    return lambda world: world.scaled in kinds


def twice_shows(world):
    """Return whether rotating twice can be detected. With linear scaling by 2, rotating twice is the same as leaving
    out the scaling, so no test can tell these two mistakes apart."""
    return (world.scaled, world.factor) != ("linear", 2.0)


# --- Positions ---


@mistake("places", "half_positions", "huggingface/candle/pull/3520", long)
def positions_in_bfloat16(self, positions, role, seq):
    return positions.bfloat16().double()


@mistake("places", "ignored_positions", "pytorch/executorch/pull/2010")
def positions_from_zero(self, positions, role, seq):
    return torch.arange(seq).double()


@mistake("places", "ignored_rows", "unslothai/unsloth/pull/3795")
def positions_of_the_first_row(self, positions, role, seq):
    return positions.reshape(-1, positions.shape[-1])[0].double()


@mistake("places", "ignored_start", "rajveer43/VeloxQuant-MLX/issues/389")
def positions_since_the_first(self, positions, role, seq):
    return (positions - positions[..., :1]).double()


@mistake("places", "ignored_gaps", "huggingface/transformers/issues/22161")
def positions_without_gaps(self, positions, role, seq):
    return (positions[..., :1] + torch.arange(seq)).double()


@mistake("places", "clamped", "vllm-project/vllm-ascend/pull/1266", long)
def table_that_is_clamped(self, positions, role, seq):
    return positions.clamp(max=self.world.length // 2 - 1).double()


@mistake("places", "wrapped", "turboderp/exllama/pull/101", long)
def table_that_wraps(self, positions, role, seq):
    return (positions % (self.world.length // 2)).double()


@mistake("places", "shifted_key", "skyzh/tiny-llm/pull/46")
def key_one_position_later(self, positions, role, seq):
    return (positions + (role == "k")).double()


@mistake("places", "stale ignored_start ignored_positions", "lucidrains/rotary-embedding-torch/issues/11")
def positions_of_an_earlier_call(self, positions, role, seq):
    return self.memory.setdefault(seq, positions).double()


@mistake("places", "one_token ignored_positions", "issue: a token that comes alone")
def position_of_one_token_lost(self, positions, role, seq):
    return positions.double() * (seq > 1)


# --- Frequencies ---


def power(dim, base, sign=-1.0, shift=0.0, width=None):
    return base ** (sign * (torch.arange(0, dim, 2, dtype=torch.float64) + shift) / (width or dim))


@mistake("theta", "other_base", "huggingface/candle/pull/3746", scaled("plain"))
def base_written_into_the_code(self):
    return power(self.world.rotary_dim, 20_000.0 if self.world.base == 10_000 else 10_000.0)


@mistake("theta", "shifted_exponent", "stanford-cs336/assignment1-basics/issues/22", scaled("plain"))
def exponent_that_counts_from_one(self):
    return power(self.world.rotary_dim, self.world.base, shift=1)


@mistake("theta", "doubled_dim", "rasbt/LLMs-from-scratch/issues/410", scaled("plain"))
def exponent_without_its_two(self):
    return power(self.world.rotary_dim, self.world.base, width=2 * self.world.rotary_dim)


@mistake("theta", "halved_dim", "ml-explore/mlx/pull/561", scaled("plain"))
def exponent_over_half_of_the_width(self):
    return power(self.world.rotary_dim, self.world.base, width=self.world.rotary_dim / 2)


@mistake(
    "theta",
    "growing_frequencies",
    "labmlai/annotated_deep_learning_paper_implementations/issues/313",
    scaled("plain"),
)
def exponent_without_its_minus(self):
    return power(self.world.rotary_dim, self.world.base, sign=1)


@mistake("theta", "half_frequencies", "sgl-project/sglang-jax/issues/1472")
def frequencies_in_bfloat16(self):
    return self.world.frequencies.bfloat16().double()


@mistake("theta", "nothing_turns", "ByteDance-Seed/VeOmni/issues/414")
def frequencies_that_are_zero(self):
    return self.world.frequencies * 0


@mistake("theta", "unscaled", "huggingface/transformers/pull/32330", scaled("linear", "yarn", "llama3"))
def scaling_that_is_dropped(self):
    return power(self.world.rotary_dim, self.world.base)


@mistake("theta", "other_base uneven_frequencies other_scaling", "apache/tvm/pull/18576", scaled("yarn"))
def scaling_under_the_exponent(self):
    return power(self.world.rotary_dim, self.world.base * self.world.factor)


@mistake("theta", "faster", "ml-explore/mlx-examples/pull/907", scaled("linear"))
def scaling_multiplied(self):
    return power(self.world.rotary_dim, self.world.base) * self.world.factor


@mistake("theta", "uneven_frequencies other_scaling", "ml-explore/mlx-examples/pull/907", scaled("llama3"))
def ramp_the_other_way_round(self):
    plain = power(self.world.rotary_dim, self.world.base)
    return plain * (1 + 1 / self.world.factor) - self.world.frequencies


@mistake("theta", "uneven_frequencies", "issue: frequencies in equal steps", scaled("plain"))
def frequencies_in_equal_steps(self):
    return torch.linspace(1.0, 1 / self.world.base, self.world.rotary_dim // 2, dtype=torch.float64)


@mistake("theta", "still_pairs", "issue: a loop that ends too early")
def last_pair_left_out(self):
    theta = self.world.frequencies.clone()
    theta[-1] = 0
    return theta


# --- Angles and tables ---


@mistake("angles", "degrees", "issue: the unit of the angle", scaled("plain"))
def angles_in_degrees(self, places, theta, role):
    return (places[..., None] * theta).deg2rad()


@mistake("angles", "half_positions half_angles", "EleutherAI/gpt-neox/issues/1003", long)
def angles_in_float16(self, places, theta, role):
    return (places[..., None] * theta).half().double()


@mistake("tables", "bf16_table", "KellerJordan/modded-nanogpt/issues/39")
def tables_in_bfloat16(self, angles, role):
    return angles.cos().bfloat16().double(), angles.sin().bfloat16().double()


@mistake("tables", "swapped_cos_sin", "NVIDIA/ngpt/issues/10")
def tables_swapped(self, angles, role):
    return angles.sin(), angles.cos()


@mistake("tables", "mixed_tables unknown", "NVIDIA/ngpt/issues/10")
def tables_cut_in_halves(self, angles, role):
    both = torch.stack((angles.cos(), angles.sin()), -1).flatten(-2)
    return both.chunk(2, -1)


@mistake("tables", "missing_sin", "NVIDIA/ngpt/issues/10")
def sine_left_out(self, angles, role):
    return angles.cos(), torch.ones_like(angles)


# --- Rotating ---


def spread(x, layout):
    return torch.cat((x, x), -1) if layout == "half" else x.repeat_interleave(2, -1)


def quarter(x, layout):
    first, second = rope.split(x, layout)
    return rope.join(-second, first, layout)


def other(layout):
    return "half" if layout == "interleaved" else "interleaved"


@mistake("turn", "swapped_layout", "raiyanyahya/how-to-train-your-gpt/issues/6")
def spread_and_quarter_turn_of_two_layouts(self, x, cos, sin, role):
    layout = self.world.layout
    return x * spread(cos, layout) + quarter(x, other(layout)) * spread(sin, layout)


@mistake("turn", "other_order", "vllm-project/vllm-metal/pull/44")
def halves_returned_in_the_other_order(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first * cos - second * sin, first * sin + second * cos, other(self.world.layout))


@mistake("turn", "no_pairs", "Tongjilibo/bert4torch/issues/1")
def quarter_turn_joined_in_halves(self, x, cos, sin, role):
    layout = self.world.layout
    first, second = rope.split(x, layout)
    return x * spread(cos, layout) + rope.join(-second, first, other(layout)) * spread(sin, layout)


@mistake("turn", "clockwise", "karpathy/nanochat/pull/489")
def minus_in_the_lower_row(self, x, cos, sin, role):
    return Stages.turn(self, x, cos, -sin, role)


@mistake("turn", "missing_minus", "skyzh/tiny-llm/pull/25")
def minus_left_out(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first * cos + second * sin, first * sin + second * cos, self.world.layout)


@mistake("turn", "other_layout", "NeuraLegion/shainet/pull/111")
def pairs_of_the_other_layout(self, x, cos, sin, role):
    first, second = rope.split(x, other(self.world.layout))
    return rope.join(first * cos - second * sin, first * sin + second * cos, other(self.world.layout))


@mistake("part", "other_part", "issue: the last entries are turned", lambda world: world.rotary_dim < world.dim)
def last_entries_turned(self):
    return slice(self.world.dim - self.world.rotary_dim, self.world.dim)


# --- Lengths ---


@mistake("lengths", "longer", "sgl-project/sglang/pull/33558", scaled("yarn"))
def factor_applied_twice(self, x, role):
    return x * self.world.lengthened**2


@mistake("lengths", "shorter", "turboderp-org/exllamav3/issues/259", scaled("yarn"))
def factor_left_out(self, x, role):
    return x


@mistake("lengths", "longer shorter", "issue: the scale of the score inside the rotation")
def query_scaled(self, x, role):
    return x * self.world.lengthened / (math.sqrt(self.world.dim) if role == "q" else 1)


# --- Which tensors, heads and rows ---


@mistake("who", "query_only", "kvcache-ai/sglang/pull/66")
def key_not_written_back(self, one, q, k, v):
    return one(q, "q"), k, v


@mistake("who", "turned_twice", "NeuraLegion/shainet/pull/110")
def cached_key_turned_again(self, one, q, k, v):
    return one(q, "q"), one(one(k, "k"), "k"), v


@mistake("who", "turned_twice", "labmlai/annotated_deep_learning_paper_implementations/issues/251", twice_shows)
def both_turned_twice(self, one, q, k, v):
    return one(one(q, "q"), "q"), one(one(k, "k"), "k"), v


@mistake("where", "wrong_axis", "facebookresearch/xformers/issues/841")
def turned_along_the_heads(self, one, x, role):
    return one(x.transpose(1, 2), role).transpose(1, 2)


@mistake("where", "other_heads", "issue: only the first head is turned")
def first_head_alone(self, one, x, role):
    return torch.cat((one(x, role)[:, :1], x[:, 1:]), 1)


@mistake("where", "other_rows", "turboderp/exllama/pull/101")
def rows_counted_on(self, one, x, role):
    long = x.transpose(0, 1).reshape(1, x.shape[1], -1, x.shape[-1])
    self.count = True
    return one(long, role).reshape(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1)


# --- Random functions -------------------------------------------------------------------------------------------------


def world_at_random(generator):
    dim = generator.choice((16, 32, 48, 64, 80, 128))
    base = generator.choice((500.0, 10_000.0, 10_000.0, 500_000.0, 1e6, round(math.exp(generator.uniform(6, 16)), 2)))
    length = generator.choice((64, 300, 1024, 2048, 4096, 8192))
    part = generator.choice((1, 1, 1, 0.5, 0.25))
    scaled = generator.choice(("plain", "plain", "plain", "linear", "yarn", "llama3"))
    if scaled in ("yarn", "llama3") and (base < 10_000 or length < 4096):
        scaled = "plain"
    rotary_dim = max(8, 2 * int(dim * part / 2))
    factor = 1.0 if scaled == "plain" else generator.choice((2.0, 4.0, 8.0))
    return World(dim, base, generator.choice(("interleaved", "half")), length, rotary_dim, scaled, factor)


def compose(world, names, mistakes=MISTAKES):
    """Build a rotation with these mistakes."""
    body = {mistakes[name].stage: mistakes[name].replace for name in names}
    return type("rotate", (Stages,), body)(world)


def differs(first, second, world):
    """Return whether two rotations differ at random positions within the trained length."""
    generator = torch.Generator().manual_seed(5)
    for batch in (False, True):
        for count in (1, 5, 40):
            q, k = torch.randn(2, 2, 3, count, world.dim, dtype=torch.float64, generator=generator)
            at = torch.randint(0, world.length, (2, count) if batch else (count,), generator=generator).sort(-1)[0]
            for one, two in zip(first(q, k, at), second(q, k, at), strict=True):
                if (one - two).abs().max() > 1e-4:
                    return True
    return False


def wrong_at_random(generator, most=3, mistakes=MISTAKES):
    """Return a random world, the names of one to ``most`` random mistakes, and the rotation with these mistakes. Each
    mistake has an effect: without it, the rotation would be different."""
    while True:
        world = world_at_random(generator)
        possible = [one.name for one in mistakes.values() if one.when(world)]
        names = generator.sample(possible, generator.randint(1, most))
        if len({mistakes[name].stage for name in names}) < len(names):
            continue
        rotation = compose(world, names, mistakes)
        less = itertools.combinations(names, len(names) - 1)
        try:
            if all(differs(rotation, compose(world, rest, mistakes), world) for rest in less):
                return world, tuple(names), rotation
        except RuntimeError:
            # If two mistakes have incompatible shapes, the rotation raises an error by itself, and there is nothing to
            # diagnose.
            continue


def sound_at_random(generator):
    world = world_at_random(generator)
    return world, (), compose(world, ())
