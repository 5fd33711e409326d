from ropebook.efficient import RotaryEmbedding as RotaryEmbedding
from ropebook.efficient import apply_rotary as apply_rotary
from ropebook.efficient import apply_rotary_qk as apply_rotary_qk
from ropebook.efficient import convert_weight as convert_weight
from ropebook.efficient import meta_to_transformers as meta_to_transformers
from ropebook.efficient import transformers_to_meta as transformers_to_meta
from ropebook.extrapolation import from_transformers as from_transformers
from ropebook.extrapolation import install as install
from ropebook.extrapolation import make as make
from ropebook.extrapolation import to_transformers as to_transformers
from ropebook.rotary_attention import KVCache as KVCache
from ropebook.rotary_attention import LlamaModel as LlamaModel
from ropebook.rotary_attention import RotaryAttention as RotaryAttention

__version__: str
