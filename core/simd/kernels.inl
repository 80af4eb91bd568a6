// SPDX-License-Identifier: BSD-3-Clause
// The vector kernels, included by one source an instruction set inside an unnamed namespace, after `Lanes`. Nothing
// here may leave a symbol with linkage, and no inline function of the library is called: the linker could otherwise
// take a copy built for a better processor.

constexpr std::size_t group = 4 * Lanes::blocks;  // words, or normals, made together

struct Counter {
  std::uint64_t seed;
  std::uint32_t t;
  std::uint32_t stream;
};

/// The words of `Lanes::blocks` blocks from `block` on, which do not cross a multiple of 2^32.
DISTZO2_FUNCTION void random_blocks(const Counter& counter, std::uint64_t block, Lanes::Wide (&x)[4]) {
  x[0] = Lanes::count_up(static_cast<std::uint32_t>(block));
  x[1] = Lanes::broadcast(static_cast<std::uint32_t>(block >> 32U));
  x[2] = Lanes::broadcast(counter.t);
  x[3] = Lanes::broadcast(counter.stream);
  philox_rounds<Lanes>(x[0], x[1], x[2], x[3], counter.seed);
}

struct WordGroup {
  using Value = std::uint32_t;
  static DISTZO2_FUNCTION void make(std::uint32_t* out, const Counter& counter, std::uint64_t block) {
    Lanes::Wide x[4];
    random_blocks(counter, block, x);
    Lanes::store_words(out, x[0], x[1], x[2], x[3]);
  }
};

struct GaussianGroup {
  using Value = float;
  static DISTZO2_FUNCTION void make(float* out, const Counter& counter, std::uint64_t block) {
    Lanes::Wide x[4];
    random_blocks(counter, block, x);
    Lanes::Float cosine;
    Lanes::Float sine;
    box_muller<Lanes>(Lanes::merge(x[0], x[2]), Lanes::merge(x[1], x[3]), cosine, sine);
    Lanes::store_interleaved(out, cosine, sine);
  }
};

/// out[0..n) = values first .. first + n of a stream. Groups stand at multiples of their size, so none crosses a
/// multiple of 2^32 blocks; the first and last may be taken in part.
template <class Group>
void fill(typename Group::Value* out, const Counter& counter, std::uint64_t first, std::size_t n) {
  while (n > 0) {
    const std::size_t skipped = first % group;
    std::size_t made = 0;
    if (skipped == 0 && n >= group) {
      const std::size_t whole = n - n % group;
      for (; made < whole; made += group) {
        Group::make(out + made, counter, (first + made) / 4);
      }
    } else {
      typename Group::Value part[group];
      Group::make(part, counter, (first - skipped) / 4);
      for (; made < n && skipped + made < group; ++made) {
        out[made] = part[skipped + made];
      }
    }
    out += made;
    first += made;
    n -= made;
  }
}

void fill_gaussian(float* z, std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t first, std::size_t n) {
  fill<GaussianGroup>(z, {seed, t, stream_word(Stream::direction, k)}, first, n);
}

void fill_weights(float* out, std::uint64_t seed, std::uint64_t first, std::size_t n) {
  fill<GaussianGroup>(out, {seed, 0, stream_word(Stream::weights, 0)}, first, n);
}

/// Calls use(at, word, bits) for the signs of global indices first .. first + n, in order: the low `bits` of `word` are
/// those of elements at, at + 1, ... Where all 32 are used, their number is a constant.
template <class Use>
DISTZO2_FUNCTION void for_each_sign_word(const Counter& counter, std::uint64_t first, std::size_t n, const Use& use) {
  std::uint32_t words[group];
  for (std::size_t at = 0; at < n;) {
    const std::uint64_t word = (first + at) / 32;
    WordGroup::make(words, counter, (word - word % group) / 4);
    for (std::size_t w = word % group; w < group && at < n; ++w) {
      const std::uint32_t begin = (first + at) % 32;
      const std::uint32_t bits = 32 - begin <= n - at ? 32 - begin : static_cast<std::uint32_t>(n - at);
      if (bits == 32) {
        use(at, words[w], 32U);
      } else {
        use(at, words[w] >> begin, bits);
      }
      at += bits;
    }
  }
}

void fill_rademacher(float* z, std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t first,
                     std::size_t n) {
  const auto make = [&](std::size_t at, std::uint32_t word, std::uint32_t bits) __attribute__((always_inline)) {
    for (std::uint32_t bit = 0; bit < bits; ++bit) {
      z[at + bit] = rademacher_sign(word, bit);
    }
  };
  for_each_sign_word({seed, t, stream_word(Stream::direction, k)}, first, n, make);
}

/// c times a sign is exact, so that fma rounds this sum.
void add_rademacher(float* theta, float c, std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t first,
                    std::size_t n) {
  const auto minus_c = __builtin_bit_cast(std::uint32_t, -c);
  const auto add = [&](std::size_t at, std::uint32_t word, std::uint32_t bits) __attribute__((always_inline)) {
    for (std::uint32_t bit = 0; bit < bits; ++bit) {
      theta[at + bit] += __builtin_bit_cast(float, minus_c ^ ((word << (31U - bit)) & 0x80000000U));
    }
  };
  for_each_sign_word({seed, t, stream_word(Stream::direction, k)}, first, n, add);
}

void perturb(float* out, const float* theta, const float* z, float scale, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = __builtin_fmaf(scale, z[i], theta[i]);
  }
}

void perturb_bf16(std::uint16_t* out, const float* theta, const float* z, float scale, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = Bfloat16::nearest(__builtin_fmaf(scale, z[i], theta[i]));
  }
}

void to_bf16(std::uint16_t* out, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = Bfloat16::nearest(x[i]);
  }
}

void scale_by(float* theta, float d, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    theta[i] = d * theta[i];
  }
}

void add_scaled(float* theta, const float* z, float c, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    theta[i] = __builtin_fmaf(c, z[i], theta[i]);
  }
}

template <class Half>
void load(float* out, const std::uint16_t* in, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = Half::to_float(in[i]);
  }
}

template <class Half>
void store(std::uint16_t* out, const float* in, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = Half::nearest(in[i]);
  }
}

template <class Half>
void store(std::uint16_t* out, const float* in, const Counter& counter, std::uint64_t first, std::size_t n) {
  constexpr std::size_t chunk = 512;
  std::uint32_t words[chunk];
  while (n > 0) {
    const std::size_t room = chunk - first % chunk;
    const std::size_t m = n < room ? n : room;
    fill<WordGroup>(words, counter, first, m);
    for (std::size_t i = 0; i < m; ++i) {
      out[i] = Half::stochastic(in[i], words[i]);
    }
    out += m;
    in += m;
    first += m;
    n -= m;
  }
}

void load_16(float* out, const std::uint16_t* in, Storage storage, std::size_t n) {
  storage == Storage::bf16 ? load<Bfloat16>(out, in, n) : load<Float16>(out, in, n);
}

void store_nearest(std::uint16_t* out, const float* in, Storage storage, std::size_t n) {
  storage == Storage::bf16 ? store<Bfloat16>(out, in, n) : store<Float16>(out, in, n);
}

void store_stochastic(std::uint16_t* out, const float* in, Storage storage, std::uint64_t seed, std::uint32_t t,
                      std::uint64_t first, std::size_t n) {
  const Counter counter{seed, t, stream_word(Stream::rounding, 0)};
  storage == Storage::bf16 ? store<Bfloat16>(out, in, counter, first, n) : store<Float16>(out, in, counter, first, n);
}

constexpr SimdKernels kernel_table{Lanes::name,  fill_gaussian, fill_rademacher, fill_weights, perturb,
                                   perturb_bf16, to_bf16,       scale_by,        add_scaled,   add_rademacher,
                                   load_16,      store_nearest, store_stochastic};
