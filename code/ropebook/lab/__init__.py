"""The laboratory of the chapter *Measured*: small language models, trained on short
texts and tested on long ones.

What the models read:

- `data`: the bytes of your own Python's library.
- `parts`: that text, split so that the parts have nothing in common. `by_name` is
  the first, wrong way to split it.
- `language`: a generated text in which the far past is worth a known number of bits.
- `tasks`: find a record, and say which of two records came first.

The models:

- `model`: a decoder-only transformer with one of nine position schemes.
- `int8`: its weights in the form that notebooks carry.
- `longer`: a model with a method applied to it.
- `training`: steps, checkpoints, resuming, and several processes.
- `trials`: the list of trainings.
- `extensions`: the methods and their parameters.

Measurements:

- `bits`: the bits of every byte, and `means` of them.
- `scores`: all numbers of one model.
- `inside`: what the model's `heads` do, and what they lose with other `frequencies`.
- `reading`: one text, byte by byte, as the model on the page reads it.

Results are judged by `intervals`, `rule` and `claims`. Pages show `measured`, in
`tables` and `pictures`, and `looked`, which summarises `inside`.

The third experiment:

- `asking`: questions at random distances.
- `causal`: a model with one pair at another frequency.
- `folding`: what a score would be at any distance.
- `order`: all of that, gathered for a page.
- `rule_two`: the draft of the rule that will judge it.
"""
