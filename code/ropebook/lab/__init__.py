"""The measured chapter's laboratory: small language models, trained on short texts and tried on long ones.

What they read: `data`, the bytes of the reader's own Python library; `parts`, that text split so that nothing is shared (`by_name`: as it
was split at first, wrongly); `language`, a generated one whose bits are known; `tasks`, to find a record and to tell which came first.

What reads: `model`, a decoder-only transformer with one of nine position schemes; `int8`, its weights as notebooks carry them;
`longer`, a model with a method; `training`: steps, checkpoints, resumption, several processes; `trials`, what is trained; `extensions`,
the methods and their parameters.

What is measured: `bits` of every byte, `means` of them, `scores`, all of a model; `inside`, what its `heads` do and what they miss with other
`frequencies`; `reading`, one text, byte by byte, as the model in the page reads it.

How it is judged: `intervals`, `rule`, `claims`. What pages show: `measured`, in `tables` and `pictures`, and `looked`, of `inside`.

The third look: `asking`, questions at random distances; `causal`, a model with one pair at another frequency; `folding`, what a score
would be at any distance; `order`, all of that for a page; `rule_two`, the draft of the rule that will judge it.
"""
