"""The measured chapter's laboratory: data, model, training and evaluation of a small language model.

`data`: bytes of the reader's own Python library, and a retrieval task in them. `model`: a decoder-only transformer with
one of seven position schemes. `training`: steps, checkpoints, resumption, several processes. `evaluation`: what the trained
model does within and beyond its length.
"""
