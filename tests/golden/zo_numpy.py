# SPDX-License-Identifier: BSD-3-Clause
"""z of the design (section 2) in numpy: a pure function of (seed, step t, direction k, global parameter index).

The words are those of Philox4x32-10, bit for bit; Rademacher signs are exact; Gaussian values are formed in float64 from
the same integers, so that the program's fp32 values are within a few ulps of them. `python3 zo_numpy.py` checks the
generator against the published answers of Philox.
"""
import numpy as np

STREAM_Z, STREAM_ROUNDING, STREAM_SAMPLER, STREAM_WEIGHTS = 0, 1, 2, 3
INDEX_ALIGNMENT = 4096
U32 = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Ten rounds. counter: four arrays (or ints) of 32-bit words, key: two. Returns (n, 4) uint32."""
    c = [np.atleast_1d(np.asarray(x, dtype=np.uint64)) for x in counter]
    c = list(np.broadcast_arrays(*c))
    k = [int(x) for x in key]
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), p1 & U32, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p0 & U32]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=1).astype(np.uint32)


def words(seed, t, stream, k, first_block, blocks):
    """(blocks, 4) words of consecutive Philox blocks."""
    block = np.uint64(first_block) + np.arange(blocks, dtype=np.uint64)
    return philox((block & U32, block >> np.uint64(32), t, (stream << 24) + k), (seed & 0xFFFFFFFF, seed >> 32))


def gaussian(seed, t, k, first, count):
    """float64 (count): z of indices first .. first + count."""
    begin, end = first // 4, (first + count + 3) // 4
    w = words(seed, t, STREAM_Z, k, begin, end - begin)
    radius = np.sqrt(-2.0 * np.log(((w[:, 0::2] >> 8) + 1.0) * 2.0**-24))
    angle = 2.0 * np.pi * ((w[:, 1::2] >> 8) * 2.0**-24)
    z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).reshape(-1)
    return z[first - 4 * begin:][:count]


def rademacher(seed, t, k, first, count):
    """float64 (count): +1 or -1."""
    begin, end = first // 128, (first + count + 127) // 128
    w = words(seed, t, STREAM_Z, k, begin, end - begin).reshape(-1)
    bits = (w[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return np.where(bits.reshape(-1) == 1, 1.0, -1.0)[first - 128 * begin:][:count]


def z(kind, seed, t, k, first, count):
    return {"gaussian": gaussian, "rademacher": rademacher}[kind](seed, t, k, first, count)


def align(index):
    return -(-index // INDEX_ALIGNMENT) * INDEX_ALIGNMENT


def canonical_layout(blocks):
    """blocks: lists of (name, shape), matrices first. Returns {name: first index} as the design's section 3 lays them out."""
    layout, index = {}, 0
    for block in blocks:
        index, in_matrices = align(index), True
        for name, shape in block:
            if in_matrices and len(shape) == 1:
                index, in_matrices = align(index), False
            layout[name] = index
            index += int(np.prod(shape))
    return layout


def llama_blocks(hidden, layers, heads, kv_heads, head_dim, ffn, vocab, tied):
    """The tensors of a LLaMA in canonical order."""
    blocks = [[("model.embed_tokens.weight", (vocab, hidden))]]
    for i in range(layers):
        p = f"model.layers.{i}."
        blocks.append([
            (p + "self_attn.q_proj.weight", (heads * head_dim, hidden)),
            (p + "self_attn.k_proj.weight", (kv_heads * head_dim, hidden)),
            (p + "self_attn.v_proj.weight", (kv_heads * head_dim, hidden)),
            (p + "self_attn.o_proj.weight", (hidden, heads * head_dim)),
            (p + "mlp.gate_proj.weight", (ffn, hidden)),
            (p + "mlp.up_proj.weight", (ffn, hidden)),
            (p + "mlp.down_proj.weight", (hidden, ffn)),
            (p + "input_layernorm.weight", (hidden,)),
            (p + "post_attention_layernorm.weight", (hidden,))])
    head = [] if tied else [("lm_head.weight", (vocab, hidden))]
    return blocks + [head + [("model.norm.weight", (hidden,))]]


def check():
    """Known answers of Random123 (kat_vectors, philox4x32 10) and moments."""
    ones = 0xFFFFFFFF
    known = [((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
             ((ones,) * 4, (ones,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
             ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))]
    for counter, key, answer in known:
        assert tuple(philox(counter, key)[0]) == answer
    for kind in ("gaussian", "rademacher"):
        x = z(kind, 3, 5, 1, 0, 1 << 20)
        assert abs(x.mean()) < 5e-3 and abs(x.std() - 1) < 5e-3
        assert np.array_equal(z(kind, 3, 5, 1, 12345, 678), x[12345:12345 + 678])
    print("ok")


if __name__ == "__main__":
    check()
