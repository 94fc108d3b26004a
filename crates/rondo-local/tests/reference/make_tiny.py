"""Makes the tiny models of `tests/it/tiny.rs`, and records what llama.cpp computes with them.

    python3 -m venv v && v/bin/pip install gguf numpy xllamacpp
    v/bin/python make_tiny.py

The weights are random (of a fixed seed), so the files hold nobody's work. llama.cpp is called through
its C functions, in the library that the package `xllamacpp` brings.
"""

import ctypes
import glob
import json
import os

import gguf
import numpy as np
import xllamacpp

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LAYERS, HEADS, KEY_HEADS, FEED = 32, 2, 4, 2, 64
HEAD_SIZE = {"qwen2": 8, "qwen3": 16, "llama": 8}
MERGES = ["h e", "l l", "o \u0120", "\u0120 t", "he ll", "hell o", "\u0120t he"]
SPECIAL = {
    "qwen2": ["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
    "qwen3": ["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
    "llama": ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"],
}
TEMPLATE = {
    "qwen2": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "qwen3": "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content.strip('\\n') + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}"
    "{%- endif %}{%- endif %}",
    "llama": "{{- bos_token }}{%- for m in messages %}{{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n'"
    " + m['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}",
}
TEXTS = ["hello the 1234 tea", "Hello,  the\n\nwell's 7 doll\u00e9"]


def byte_letters():
    """GPT-2's printable letters for all bytes, by byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def write(family, path):
    random = np.random.default_rng(len(family) * 1000 + ord(family[-1]))
    size = HEAD_SIZE[family]
    tokens = byte_letters() + [merge.replace(" ", "") for merge in MERGES] + SPECIAL[family]
    normal = len(tokens) - len(SPECIAL[family])
    writer = gguf.GGUFWriter(path, family)
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(500000.0 if family == "llama" else 10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe" if family == "llama" else "qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * normal + [3] * len(SPECIAL[family]))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(normal)
    writer.add_eos_token_id(normal + 1)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE[family])

    def matrix(name, rows, columns):
        numbers = random.standard_normal((rows, columns)) / np.sqrt(columns)
        writer.add_tensor(name, numbers.astype(np.float32))

    def vector(name, length, around):
        numbers = around + 0.3 * random.standard_normal(length)
        writer.add_tensor(name, numbers.astype(np.float32))

    matrix("token_embd.weight", len(tokens), WIDTH)
    matrix("output.weight", len(tokens), WIDTH)
    vector("output_norm.weight", WIDTH, 1)
    if family == "llama":
        factors = np.linspace(1, 8, size // 2)
        writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    for layer in range(LAYERS):
        part = lambda name: f"blk.{layer}.{name}"
        vector(part("attn_norm.weight"), WIDTH, 1)
        vector(part("ffn_norm.weight"), WIDTH, 1)
        for name, heads in [("attn_q", HEADS), ("attn_k", KEY_HEADS), ("attn_v", KEY_HEADS)]:
            matrix(part(f"{name}.weight"), heads * size, WIDTH)
            if family == "qwen2":
                vector(part(f"{name}.bias"), heads * size, 0)
        if family == "qwen3":
            vector(part("attn_q_norm.weight"), size, 1)
            vector(part("attn_k_norm.weight"), size, 1)
        matrix(part("attn_output.weight"), WIDTH, HEADS * size)
        matrix(part("ffn_gate.weight"), FEED, WIDTH)
        matrix(part("ffn_up.weight"), FEED, WIDTH)
        matrix(part("ffn_down.weight"), WIDTH, FEED)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Parameters(ctypes.Structure):
    """Larger than any of llama.cpp's, whose defaults are used as they come."""

    _fields_ = [("bytes", ctypes.c_char * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32)] + [
        (name, ctypes.c_void_p) for name in ["token", "embd", "pos", "n_seq_id", "seq_id", "logits"]
    ]


class LlamaCpp:
    def __init__(self):
        package = os.path.dirname(xllamacpp.__file__)
        self.library = ctypes.CDLL(glob.glob(f"{package}/*.so")[0])
        for name, result in [
            ("llama_model_default_params", Parameters),
            ("llama_context_default_params", Parameters),
            ("llama_model_load_from_file", ctypes.c_void_p),
            ("llama_init_from_model", ctypes.c_void_p),
            ("llama_model_get_vocab", ctypes.c_void_p),
            ("llama_batch_get_one", Batch),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float)),
        ]:
            getattr(self.library, name).restype = result
        self.library.llama_backend_init()

    def load(self, path):
        parameters = self.library.llama_model_default_params()
        model = self.library.llama_model_load_from_file(path.encode(), parameters)
        assert model, path
        return ctypes.c_void_p(model)

    def tokens(self, model, text):
        vocabulary = ctypes.c_void_p(self.library.llama_model_get_vocab(model))
        tokens = (ctypes.c_int32 * 256)()
        raw = text.encode()
        count = self.library.llama_tokenize(vocabulary, raw, len(raw), tokens, 256, False, False)
        assert count > 0
        return list(tokens[:count])

    def logits(self, model, tokens, size):
        parameters = self.library.llama_context_default_params()
        context = ctypes.c_void_p(self.library.llama_init_from_model(model, parameters))
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        batch = self.library.llama_batch_get_one(array, len(tokens))
        assert self.library.llama_decode(context, batch) == 0
        logits = self.library.llama_get_logits_ith(context, -1)
        found = [round(float(logits[index]), 5) for index in range(size)]
        self.library.llama_free(context)
        return found


def main():
    llama = LlamaCpp()
    recorded = {}
    for family, special in SPECIAL.items():
        path = f"{HERE}/tiny-{family}.gguf"
        write(family, path)
        model = llama.load(path)
        size = 256 + len(MERGES) + len(special)
        texts = []
        for text in TEXTS:
            tokens = llama.tokens(model, text)
            texts.append({"text": text, "tokens": tokens, "logits": llama.logits(model, tokens, size)})
        recorded[family] = texts
    with open(f"{HERE}/tiny.json", "w", encoding="utf-8") as file:
        json.dump(recorded, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


main()
