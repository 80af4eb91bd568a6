#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes sampler.txt: permutations by a second, plain implementation of Philox4x32-10 and of unbiased Fisher-Yates.

Each line: seed epoch n, then the permutation. Run: python3 make_sampler.py > sampler.txt
"""

MASK = 0xFFFFFFFF


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key & MASK, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & MASK, (a >> 32) ^ c3 ^ k1, a & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


# Published answers (Random123, kat_vectors): zeros, ones, digits of pi.
assert philox((0, 0, 0, 0), 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
assert philox((MASK,) * 4, (1 << 64) - 1) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0xA4093822 | 0x299F31D0 << 32) == (
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


def words(seed, epoch):
    block = 0
    while True:
        yield from philox((block & MASK, block >> 32, epoch, 2 << 24), seed)
        block += 1


def below(stream, bound):
    while True:
        product = next(stream) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


def permutation(seed, epoch, n):
    order, stream = list(range(n)), words(seed, epoch)
    for i in range(n - 1, 0, -1):
        j = below(stream, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


for seed, epoch, n in [(0, 0, 1), (0, 0, 7), (0, 1, 7), (1234567890123, 0, 20), (2**64 - 1, 2**32 - 1, 33), (42, 5, 100)]:
    print(seed, epoch, n, *permutation(seed, epoch, n))
