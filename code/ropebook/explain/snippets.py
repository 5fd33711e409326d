"""Code for loading, converting and extending the model, as data.

Each snippet contains the model's numbers and states what it was checked against.

A snippet is shown if the condition ``when`` holds. ``code`` and ``note`` contain the names of facts in braces.
"""

from __future__ import annotations

from collections.abc import Mapping

from ropebook.explain.language import compiled, filled, value

TRANSFORMERS = "transformers 5.23.0, run by this book's tests, November 2026"
VLLM = "checked against vLLM's documentation, docs.vllm.ai/en/stable/features/context_extension, November 2026"
LLAMA_CPP = "checked against llama.cpp's tools/server/README.md at commit 00dc8057, November 2026"
CAPPING = "checked against llama.cpp's issue 17459 and pull request 28030 of August 2026, in November 2026"

_PLAIN = ["among", "kind", ["default"]]
_GROWS = [
    "and",
    _PLAIN,
    [">", "wanted", "trained"],
    ["not", "by_layer"],
    ["missing", "part_name"],
]
_FITS = ["and", ["not", "stopped"], ["given", "maximum"]]
_YARN = (
    '{{"rope_type": "yarn", "rope_theta": {base:code}, "factor": {extend:code}, '
    '"original_max_position_embeddings": {trained:code}{share}}}'
)
_YARN_SHARED = _YARN.replace(
    "{share}", ', "partial_rotary_factor": {fraction:code}'
)
_YARN = _YARN.replace("{share}", "")


def _snippet(
    title: str, checked: str, when: object, code: str, note: str = ""
) -> dict[str, object]:
    return {
        "title": title,
        "checked": checked,
        "when": when,
        "code": code,
        "note": note,
    }


def _extended(parameters: str) -> list[dict[str, object]]:
    share = (
        ["<", "fraction", 1]
        if parameters == _YARN_SHARED
        else ["not", ["<", "fraction", 1]]
    )
    when = ["and", _GROWS, ["not", "stopped"], share]
    given = parameters.replace("{{", "{").replace("}}", "}")
    return [
        _snippet(
            "Extend, in transformers", TRANSFORMERS, when,
            "from transformers import AutoConfig, AutoModelForCausalLM\n\n"
            'config = AutoConfig.from_pretrained("path/to/model")\n'
            f"config.rope_parameters = {given}\n"
            "config.max_position_embeddings = {wanted:code}\n"
            'model = AutoModelForCausalLM.from_pretrained("path/to/model", config=config)',
            "YaRN with a factor of {extend}, for texts of {wanted} tokens. Short texts change as well.",
        ),
        _snippet(
            "Extend, in vLLM", VLLM, when,
            f"vllm serve path/to/model --max-model-len {{wanted:code}} \\\n  --hf-overrides '{{\"rope_parameters\": {given}}}'",
            "The dictionary replaces the one in the file, so it must repeat the base. Older versions had the option --rope-scaling "
            "instead.",
        ),
    ]  # fmt: skip


SNIPPETS = [
    _snippet(
        "Load, in transformers", TRANSFORMERS, _FITS,
        'from transformers import AutoModelForCausalLM\n\nmodel = AutoModelForCausalLM.from_pretrained("path/to/model")',
        "It reads the scaling from config.json by itself.",
    ),
    _snippet(
        "Load, in vLLM", VLLM, _FITS,
        "vllm serve path/to/model --max-model-len {served:code}",
        "It reads the scaling from config.json by itself. Without the option, it uses the maximum length that the file allows.",
    ),
    _snippet(
        "Convert and load, in llama.cpp", LLAMA_CPP, _FITS,
        "python convert_hf_to_gguf.py path/to/model --outfile model.gguf\nllama-server -m model.gguf -c {served:code}",
        "The converter must support the model's architecture. It writes the settings for positions to the file, and llama-server reads them.",
    ),
    *_extended(_YARN),
    *_extended(_YARN_SHARED),
    _snippet(
        "Extend, in llama.cpp, with YaRN", LLAMA_CPP, ["and", _GROWS, ["not", "stopped"]],
        "llama-server -m model.gguf -c {wanted:code} \\\n"
        "  --rope-scaling yarn --rope-scale {extend:code} --yarn-orig-ctx {trained:code}",
        "--rope-scale {extend:code} is the same as --rope-freq-scale {inverse_extend:code}.",
    ),
    _snippet(
        "Extend, in llama.cpp, by the base", LLAMA_CPP, ["and", _GROWS, ["not", "stopped"], ["given", "raised_base"]],
        "llama-server -m model.gguf -c {wanted:code} --rope-freq-base {raised_base:code}",
        "The base of NTK-aware scaling with a factor of {extend}. It stretches the middle pairs by less, so the model "
        "usually doesn't reach {wanted} tokens: use the base for a larger factor, or YaRN.",
    ),
    _snippet(
        "A limit of llama-server", CAPPING, ["and", _GROWS, ["not", "stopped"]],
        "",
        "llama-server caps requests at the length given in the GGUF file, {trained} tokens, and its log then says “capping”. "
        "Since August 2026 YaRN's options lift this cap. With an older build, or with the base alone, add "
        "--override-kv ARCHITECTURE.context_length=int:{wanted:code}.",
    ),
    _snippet(
        "Extend a model with several parts", VLLM, ["and", _PLAIN, ["not", "stopped"], ["given", "part_name"]],
        "",
        "The dictionary belongs in {part_name}. At the top of --hf-overrides, or of the configuration, it would not reach the "
        "language model.",
    ),
    _snippet(
        "Extend further?", TRANSFORMERS, ["and", ["not", _PLAIN], ["not", "stopped"]],
        "",
        "The file already scales its frequencies. A second scaling would replace this one rather than extend it, so no snippet is "
        "given.",
    ),
]  # fmt: skip


_WHEN = [compiled(one["when"]) for one in SNIPPETS]


def snippets(facts: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the snippets that apply to these facts, with the numbers filled in.

    >>> facts = {"kind": "default", "maximum": 4096, "trained": 4096, "target": 4096, "base": 1e4, "fraction": 1,
    ...          "rotary_dim": 128}
    >>> print(snippets(facts)[5]["code"])
    llama-server -m model.gguf -c 16384 \\
      --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096
    """
    facts = {**facts, **numbers(facts)}
    return [
        {
            name: filled(one[name], facts)
            for name in ("title", "code", "note", "checked")
        }
        for one, when in zip(SNIPPETS, _WHEN, strict=True)
        if when(facts)
    ]


def numbers(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the numbers that the snippets need in addition to the facts.

    These are, among others, the ``wanted`` length (the requested one, or four times the trained length), the factor
    that reaches it, and the base of NTK-aware scaling for this factor.
    """
    trained, asked, dim = (
        facts.get("trained"),
        facts.get("asked"),
        facts.get("rotary_dim"),
    )
    wanted = asked if asked is not None else value(["*", 4, "trained"], facts)
    extend = value(
        ["/", "wanted", "trained"], {"wanted": wanted, "trained": trained}
    )
    raised = None
    if (
        extend is not None
        and extend > 1
        and facts.get("base") is not None
        and dim is not None
        and dim > 2
    ):
        raised = float(f"{facts['base'] * extend ** (dim / (dim - 2)):.5g}")
    return {
        "by_layer": facts.get("layer_type") is not None,
        "wanted": wanted,
        "extend": extend,
        "inverse_extend": value(["/", 1, "extend"], {"extend": extend}),
        "served": facts.get("maximum")
        if asked is None or asked > (facts.get("target") or 0)
        else asked,
        "raised_base": raised,
    }
