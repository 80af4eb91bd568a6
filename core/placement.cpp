// SPDX-License-Identifier: BSD-3-Clause
#include "core/placement.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

const Chunk& chunk_at(const ChunkTable& chunks, int i) {
  return chunks.chunks[static_cast<std::size_t>(i)];
}

/// The token embedding or an untied head.
bool is_vocabulary(const TensorTable& table, const Chunk& c) {
  const int last = static_cast<int>(table.blocks.size()) - 1;
  return c.matrix() &&
         (c.tensor_begin == token_table || (c.block == last && c.tensor_begin == table.blocks.back().tensor_begin));
}

Unit unit_of(const ChunkTable& chunks, int begin, int end) {
  const Chunk &first = chunk_at(chunks, begin), &last = chunk_at(chunks, end - 1);
  Unit u;
  u.block = first.block;
  u.chunk_begin = begin;
  u.chunk_end = end;
  u.offset = first.offset;
  u.bytes = last.offset + last.bytes - first.offset;
  u.vectors = !first.matrix();
  return u;
}

}  // namespace

const char* name_of(Tier tier) {
  return tier == Tier::resident ? "resident" : tier == Tier::host ? "host" : "disk";
}

bool Placement::streams_any() const {
  return std::ranges::any_of(units, [&](const Unit& u) { return streams(u); });
}

bool may_stream(const Placement& placement, const TensorTable& table, const ChunkTable& chunks, int unit) {
  const Chunk& first = chunk_at(chunks, placement.units[static_cast<std::size_t>(unit)].chunk_begin);
  return is_decoder(table, first.block) || is_vocabulary(table, first);
}

Placement make_units(const TensorTable& table, const ChunkTable& chunks, bool groups) {
  Placement p;
  p.chunks = chunks;
  p.groups = groups;
  // The largest unit of a decoder block bounds the row ranges of embedding and head.
  std::size_t largest = 0;
  for (int pass = 0; pass < 2; ++pass) {
    p.units.clear();
    p.unit_begin.clear();
    for (int b = 0; b < std::ssize(table.blocks); ++b) {
      p.unit_begin.push_back(static_cast<int>(p.units.size()));
      const int end = chunks.block_begin[static_cast<std::size_t>(b) + 1];
      for (int begin = chunks.block_begin[static_cast<std::size_t>(b)], next; begin < end; begin = next) {
        const Chunk& first = chunk_at(chunks, begin);
        const bool range = is_vocabulary(table, first);
        const auto same_unit = [&](int i) {
          const Chunk& c = chunk_at(chunks, i);
          if (is_decoder(table, b) && !groups) return true;
          if (c.tensor_begin != first.tensor_begin) return false;
          return !range || c.offset + c.bytes - first.offset <= largest;
        };
        next = begin + 1;
        while (next < end && same_unit(next)) ++next;
        p.units.push_back(unit_of(chunks, begin, next));
        if (!groups && is_decoder(table, b)) p.units.back().vectors = false;
        if (is_decoder(table, b)) largest = std::max(largest, p.units.back().bytes);
      }
    }
    p.unit_begin.push_back(static_cast<int>(p.units.size()));
  }
  return p;
}

Placement resident_placement(const TensorTable& table, Storage storage) {
  return make_units(table, make_chunk_table(table, storage), false);
}

void size_buffers(Placement& placement) {
  placement.buffer_bytes = placement.vector_buffer_bytes = 0;
  for (const Unit& u : placement.units)
    if (placement.streams(u)) {
      std::size_t& bytes = u.vectors ? placement.vector_buffer_bytes : placement.buffer_bytes;
      bytes = std::max(bytes, (u.bytes + page_bytes - 1) / page_bytes * page_bytes);
    }
}

}  // namespace distzo2
