"""A published model on a laptop: we read it from a GGUF file into the book's own
Llama and examine it.

To read the model:

- `container`: what a GGUF file contains.
- `sizes`: which Llama it describes.
- `tokens`: its tokenizer.
- `loading`: the model, with queries and keys in the layout you choose.
- `reading`: its loss at each position of a long text.
- `layers`: a look at each layer while the model reads.
- `published`: which model it is, and where its file comes from.
- `texts`: what the model reads.

To see what its heads do:

- `heads`: a map of all of them.
- `bias`: how distance alone affects their scores.
- `lookback`: where the queries of long texts look.

To change something and see what happens:

- `changes`: use other frequencies.
- `sinks`: treat the first token separately.
- `penalty`: add a bias that depends on distance.

The findings are judged by `rule`.

Only reading a file needs the package gguf: ``pip install 'ropebook[real]'``.
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
