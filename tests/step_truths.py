"""Reasons why the right answer to each step is right. A reason is a JavaScript condition on the figure's numbers, which
must be true, and which would be false if one of the wrong answers were right. The keys are the page, the figure and the
step number. `a` is the data that the figure computes at the start of the step, and `b` is the data at the settings that
"just show me" leads to. `at(text)` is the data at the start of the step with the dials in `text` changed. The small
model's results are tested separately, because the model runs outside the figure's own script.
"""

from __future__ import annotations

HELPERS = """
  const near = (x, y, off) => Math.abs(x - y) <= off;
  const most = (list) => Math.max(...list);
  const least = (list) => Math.min(...list);
  const top = (list) => list.indexOf(most(list));
"""

TRUTHS = {
    ("attention", "shuffle", 1): "b.change < 1e-12",
    ("attention", "shuffle", 2): "least(b.changes) > 0.05",
    ("attention", "shuffle", 3): "[0, 1, 4].every((k) => b.changes[k] < 1e-12) && least(b.changes.slice(2, 4)) > 0.1",
    ("attention_scale", "saturation", 1): "near(most(a.weights), 0.45, 0.005) && near(most(b.weights), 1, 0.01)"
    " && top(a.weights) !== top(b.weights)",
    (
        "attention_scale",
        "saturation",
        2,
    ): "near(most(b.weights), 0.25, 0.01) && near(most(a.weights), 1, 0.01) && top(a.weights) === top(b.weights)",
    (
        "attention_scale",
        "saturation",
        3,
    ): "most(a.weights) > 0.99 && [...Array(16).keys()].every((k) => { const one = most(at(`draw=${k + 1}`).weights);"
    " return k === 3 ? near(one, 0.4, 0.025) && at('draw=4').gradient >= 0.45 : one > 0.6"
    " && at(`draw=${k + 1}`).gradient < 0.45; }) && near(most(at('draw=16').weights), 0.65, 0.025)",
    ("beyond", "patches", 1): "near(a.below, 0.97, 5e-3) && near(b.below, 0.24, 5e-3)",
    ("choose", "advice", 1): "near(a.raised, 69_000, 500) && near(b.raised, 180_000, 1000)",
    ("choose", "advice", 2): "b.least > a.least && b.young > a.young",
    (
        "complex_plane",
        "fourier",
        1,
    ): "[...b.products].every((one, i) => (one < 0) === (i === 1 || i === 2)) && b.products.length === 16"
    " && [...a.products].every((one) => near(one, a.products[0], 1e-12))",
    (
        "complex_plane",
        "fourier",
        2,
    ): "(() => { const high = (d) => at(`summed=16&distance=${d}`).score / b.highest;"
    " return [94, 106].every((d) => near(high(d), 0.75, 0.02) && at(`distance=${d}`).score > 0.9 * a.highest)"
    " && [...Array(201).keys()].every((d) => Math.abs(d - 100) < 3 || high(d) < 0.77); })()",
    (
        "complex_plane",
        "fourier",
        3,
    ): "[a, b, at('base=100'), at('base=10000000')].map(({ total, highest }) => [...total].filter((one, i, all) =>"
    " i && one >= all[i - 1] && one > all[i + 1]).every((one) => one > 0.95 * highest)).join()"
    " === 'false,true,false,false'",
    ("decay", "bank", 1): "a.turned === 46 && b.turned === 32 && b.turns.length === 64",
    ("decay", "distance", 1): "b.least < -20 && most([...b.high].slice(b.leastAt / b.per)) > 0",
    ("decay", "distance", 2): "b.home === 8 && near(a.least, -4, 0.5) && near(b.least, -8, 0.5)",
    ("decay", "distance", 3): "b.per === 1 && Math.abs(top([...b.high]) - 256) > 20 && top([...a.high]) === 256",
    ("decay", "sweep", 1): "b.least < -0.99 && most([...b.values].slice(2000)) > 0.99",
    (
        "decay",
        "sweep",
        2,
    ): "b.belowHalf < a.belowHalf && ['base=50', 'base=100'].map(at).every((one) => one.least < -0.1"
    " && most([...one.values].slice(600)) > 0.1 && most([...one.values].slice(600)) < 0.5)",
    ("decay", "sweep", 3): "a.firstNegative > 0 && b.firstNegative < 0 && at('base=20000').firstNegative > 0"
    " && at('base=49000').firstNegative < 0",
    ("derivation", "lock", 1): "near(a.rope, b.rope, 1e-9) && Math.abs(a.added - b.added) > 1",
    ("derivation", "lock", 2): "near(a.rope, -1.83, 5e-3) && near(b.rope, -3.55, 5e-3)",
    ("derivation", "turn", 1): "near(b.matrix[2], Math.sin(Math.PI / 4), 1e-3) && at('position=250').matrix[2] < 0.1"
    " && near(a.angles[7], 0.000316, 5e-7) && near(Math.PI / 4 / a.angles[7], 2484, 0.5)",
    ("derivation", "turn", 2): "(() => { const [x, y] = [0, 1].map((k) => b.turned[k] - b.start[k]);"
    " const off = Math.hypot(x, y) / b.before; return b.angles[0] === 44 && off > 0.01 && off < 0.1; })()",
    (
        "derivation_laws",
        "turn",
        1,
    ): "b.angles.length === 8 && b.angles.every((one, i) => (i ? one > a.angles[i] : one === a.angles[i]))",
    ("efficient", "pairing", 1): "near(a.score, a.reference, 1e-12)"
    " && [0, 5, 20].every((n) => { const one = at(`permute_k=on&m=${n}&n=${n}`);"
    " return Math.abs(one.score - one.reference) > 0.1; }) && Math.abs(b.scores[0] - b.references[0]) > 0.1",
    ("efficient", "pairing", 2): "[0, 5, 20].every((n) => { const one = at(`permute_q=on&m=${n}&n=${n}`);"
    " return near(one.score, one.reference, 1e-12); }) && b.difference > 1",
    ("efficient", "pairing", 3): "b.difference < 1e-12 && at('permute_q=off').difference > 0.1"
    " && at('pairing=interleaved').difference > 0.1",
    ("efficient_precision", "precision", 1): "b.different === 1 && a.different === 12",
    ("efficient_precision", "precision", 2): "a.different === 64 && b.different === 1"
    " && at('rounded=frequencies').different === 64",
    ("explain", "explain", 1): "a.fresh > 0 && b.fresh === a.fresh && b.far > a.far",
    ("explain", "explain", 2): "b.findings.map(([kind]) => kind).join() === 'wrong,suspicious,unknown' && !b.error"
    " && explained(EXAMPLES.mistake, RULES, null).tables.every(({ facts }) => facts.stopped === false)",
    ("extrapolation", "ladder", 1): "b.stretch[0].every((one) => near(one, 4, 1e-9))",
    ("extrapolation", "ladder", 2): "near(b.stretch[0][0], 1, 1e-12) && near(b.stretch[0].at(-1), 4, 1e-6)"
    " && b.stretch[0].slice(1, -1).every((one) => one > 1 && one < 4)",
    ("extrapolation", "ladder", 3): "b.stretch[0].every((one, i) => near(one, 1, 1e-9) === (b.wavelengths[i] <= 128))"
    " && b.wavelengths.some((one) => one > 100 && one <= 128)"
    " && b.stretch[0].every((one, i) => b.wavelengths[i] <= 4096 || near(one, 4, 1e-9))",
    ("extrapolation_configured", "ramp", 1): "b.largest < a.largest && at('factor=2').largest < b.largest",
    ("extrapolation_distances", "timelapse", 1): "top(b.errors) > 56 && top(b.errors) < 72 && b.errors[63] > 0.96"
    " && b.errors[0] < 0.1 && b.errors.at(-2) < 0.1",
    ("intro", "arrows", 1): "near(a.between, b.between, 1e-9) && near(a.score, b.score, 1e-9)"
    " && ['query', 'key'].every((name) => { const [[x, y], [u, v]] = [a[name], b[name]];"
    " return near(Math.atan2(x * v - y * u, x * u + y * v), 5 * a.theta, 1e-9); })",
    ("intro", "arrows", 2): "b.between < 0.1 && [...Array(24).keys()].every((m) => at(`m=${m}`).score <= b.score)",
    ("intro", "arrows", 3): "[...Array(24).keys()].every((m) => near(at(`m=${m}`).score, a.score, 0.02))",
    (
        "lab",
        "measured",
        1,
    ): "[100, 150, 200, 250].map((byte) => at(`position=${byte}`)).every(({ lines, here, against }) =>"
    " lines[1] === against && near(here[0] - here[1], 0.1, 0.05)) && a.here[0] < a.here[1]",
    ("real", "penalty", 1): "b.changedLowest > 1.5 * a.changedLowest",
    ("real", "penalty", 2): "b.changedLowest === b.plainLowest && most([...b.changed].map((one, k) =>"
    " Math.abs(one - b.plain[k]))) < 0.05 * (most([...b.plain]) - least([...b.plain]))",
    ("real", "penalty", 3): "(() => { const rise = (k) => { const { changed } = at(`first=${k}&last=${k}&factor=2`);"
    " return changed.at(-1) - least([...changed]); }; return [...Array(32).keys()].every((k) => k === 23 || rise(k) >"
    " rise(23)) && near(rise(23) / (b.plain.at(-1) - least([...b.plain])), 0.5, 0.05); })()",
    ("real_heads", "heads", 1): "b.levels.filter((one) => one > 0.3).length < 10"
    " && b.levels.filter((one) => one < 0.05).length > 135",
    ("real_heads", "heads", 2): "top(b.levels) === 16 * 9 && near(b.fast, 0.37, 0.005) && b.longest > 15",
    (
        "relatives",
        "rivals",
        1,
    ): "[1, 2, 3, 4, 6, 7, 8].every((head) => Math.abs(at(`head=${head}`).here[0] - b.here[1]) >"
    " Math.abs(b.here[0] - b.here[1]))",
    ("relatives", "rivals", 2): "b.here[1] > b.mirrored[1] && near(a.here[1], a.mirrored[1], 1e-9)",
    ("relatives", "rivals", 3): "[-256, -100, 0, 100, 255].every((k) =>"
    " at(`second=signed&offset=${k}`).here[1] < b.here[1])",
    ("sinusoidal", "clocks", 1): "a.young === 5 && b.young === 3",
    ("sinusoidal", "heatmap", 1): "b.turned === 32 && a.turned === 17",
}
