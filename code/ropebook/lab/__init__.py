"""The measured chapter's laboratory: data, model, training and evaluation of a small language model.

`data`: bytes of the reader's own Python library; `first_text`: as the first experiment divided it. `model`: a decoder-only transformer with
one of nine position schemes; `int8`, its weights as notebooks carry them. `training`: steps, checkpoints, resumption, several
processes. `evaluation`: what the trained model does within and beyond its length, from `texts`, `longer` (the model with a
method), `bits` and `means`. `inside`: what its `heads` do, and what they miss with other `frequencies`. `reading`: one text, byte
by byte, as the model in the page reads it. `verdicts`: what the `grid_claims` are worth, by the rule of `differences`.

The second experiment: `parts`, the text split so that nothing is shared; `language`, a generated one whose bits are known; `tasks`, to
find a record and to tell which came first; `trials`, what is trained; `scores`, what is measured; `extensions`, the methods;
`intervals`, `rule` and `claims`, how it is judged; `measured`, what pages show of it, in `tables` and `pictures`.
`looked` is what they show of `inside`.
"""
