"""Read a published model on a laptop: load it from a GGUF file into the book's own
Llama, and examine it.

Modules that read the model:

- `container`: the contents of a GGUF file.
- `sizes`: the Llama that the file describes.
- `tokens`: the model's tokenizer.
- `loading`: the model itself, with queries and keys in the layout you choose.
- `reading`: the model's loss at each position of a long text.
- `layers`: access to each layer while the model reads.
- `published`: the name of the model, and where its file comes from.
- `texts`: the material that the model reads.

Modules that measure what its heads do:

- `heads`: a map of all heads.
- `bias`: the effect of distance alone on the heads' scores.
- `lookback`: where queries look in long texts.
- `records`: what the model recalls from far back.

Modules that change something, to see what happens:

- `changes`: use other frequencies.
- `sinks`: treat the first token separately.
- `penalty`: add a bias that depends on distance.
- `rounded`: do one step of the rotation in a low-precision type.

`rule` judges the findings.

You need the package gguf only to read a file: ``pip install 'ropebook[real]'``.
"""

from ropebook.real.container import Container, read
from ropebook.real.loading import Loaded, load, model, stored_names, weights
from ropebook.real.reading import by_stretch, last_states, losses
from ropebook.real.sizes import Configuration, configuration
from ropebook.real.tokens import Tokenizer, byte_letters, tokenizer, words

__all__ = [
    "Configuration",
    "Container",
    "Loaded",
    "Tokenizer",
    "by_stretch",
    "byte_letters",
    "configuration",
    "last_states",
    "load",
    "losses",
    "model",
    "read",
    "stored_names",
    "tokenizer",
    "weights",
    "words",
]
