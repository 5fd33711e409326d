"""The laboratory of chapter *Measured*: small language models, trained on short texts and tested on long
ones.

What they read: `data`, the bytes of your own Python's library; `parts`, that text split so that its parts share nothing
(`by_name`: the first, wrong way to split it); `language`, a generated text whose bits are known; `tasks`, finding a
record and telling which of two came first.

The models: `model`, a decoder-only transformer with one of nine position schemes; `int8`, its weights as notebooks
carry them; `longer`, a model with a method; `training`: steps, checkpoints, resuming, several processes; `trials`, the
trainings; `extensions`, the methods and their parameters.

Measurements: `bits` of every byte, their `means`, and `scores`, all numbers of a model; `inside`, what its `heads` do
and what they lose with other `frequencies`; `reading`, one text, byte by byte, as the model on the page reads it.

How it is judged: `intervals`, `rule`, `claims`. What pages show: `measured`, in `tables` and `pictures`, and `looked`,
which summarises `inside`.

The third experiment: `asking`, questions at random distances; `causal`, a model with one pair at another frequency;
`folding`, what a score would be at any distance; `order`, all of that for a page; `rule_two`, the draft of the rule
that will judge it.
"""
