"""The laboratory of the *Measured* chapter: small language models, trained on short
sequences and tested on long ones.

Data:

- `data`: the source code of your own Python's standard library, as bytes.
- `parts`: the same bytes, split so that the parts have nothing in common. `by_name`
  was a first attempt at splitting them, which went wrong.
- `language`: a generated language in which the distant past is worth a known number
  of bits.
- `tasks`: two tasks. The model retrieves a record, or says which of two records came
  first.

Models:

- `model`: a decoder-only transformer with one of nine position schemes.
- `int8`: the model's weights in the compressed form that notebooks contain.
- `longer`: a model with a context-extension method applied to it.
- `training`: training steps, checkpoints, resuming, and training in several
  processes.
- `trials`: the list of training runs.
- `extensions`: the context-extension methods and their parameters.

Measurements:

- `bits`: the number of bits that each byte costs; `means` averages them.
- `scores`: all the measurements of one model.
- `inside`: what the model's `heads` do, and what the model loses when its
  `frequencies` change.
- `reading`: the loss of the model shown on the page, byte by byte.

`intervals`, `rule` and `claims` judge the results. Pages show `measured` as `tables`
and `pictures`, and they show `looked`, which summarises the results of `inside`.

The third experiment:

- `asking`: questions at random distances.
- `causal`: a model with one pair at another frequency.
- `folding`: the score that a head would give at any distance.
- `order`: collects the results of this experiment for a page.
- `rule_two`: the rule that judges this experiment; pages show `decided`.
"""
