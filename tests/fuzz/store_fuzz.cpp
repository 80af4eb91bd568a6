// SPDX-License-Identifier: BSD-3-Clause
// The files of a disk store: store.json, and behind a zero byte the slots of chunks.bin, each as 64 bytes of header, a
// byte that says how much of its payload follows, and that; pages are filled up with zeros.
#include "io/block_file.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/io/chunk_fixture.hpp"
#include "tests/support/file_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t header_bytes = 64, most_slots = 8;
constexpr std::uint32_t covered = 100;  // records that the run has

const ChunkTable& small_table() {
  static const ChunkTable table = table_of({{100, 300}, {64}});
  return table;
}

BlockFileOptions small_options() {
  BlockFileOptions options;
  options.identity = 7;
  options.spare_slots = 2;
  options.threads = 0;
  options.callers = 1;
  options.direct = false;
  options.covered = covered;
  options.history = [](std::uint32_t version) { return std::uint64_t{version} / 2; };
  return options;
}

std::uint64_t hash_of(const char* bytes, std::size_t n) {
  return XXH3_64bits(bytes, n);
}

/// A header of this store whose checksums fit what it says of itself.
void seal(char* page, std::size_t stride, std::string_view example) {
  SlotHeader header;
  std::memcpy(page, example.data(), 2 * sizeof(std::uint64_t));  // the format and the store
  std::memcpy(&header, page + sizeof(std::uint64_t), sizeof header);
  header.history = header.version / 2;
  if (header.bytes <= stride - page_bytes) {  // parts of a page each, and the hash of their hashes
    std::vector<std::uint64_t> parts;
    for (std::size_t at = 0; at < header.bytes; at += page_bytes)
      parts.push_back(hash_of(page + page_bytes + at, std::min<std::size_t>(page_bytes, header.bytes - at)));
    if (!parts.empty()) std::memcpy(page + header_bytes, parts.data(), parts.size() * sizeof parts[0]);
    header.payload_hash = hash_of(reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof parts[0]);
  }
  std::memcpy(page + sizeof(std::uint64_t), &header, sizeof header);
  const std::uint64_t hash = hash_of(page, header_bytes - sizeof(std::uint64_t));
  std::memcpy(page + header_bytes - sizeof hash, &hash, sizeof hash);
}

std::string slots_of(std::string_view input, bool sealed, std::string_view example) {
  const std::size_t stride = page_bytes + small_table().slot_bytes;
  std::string bytes;
  for (std::size_t slot = 0; slot < most_slots && !input.empty(); ++slot) {
    bytes.resize((slot + 1) * stride, '\0');
    char* page = bytes.data() + slot * stride;
    const std::string_view header = input.substr(0, header_bytes);
    std::ranges::copy(header, page);
    input.remove_prefix(header.size());
    const std::size_t wanted = input.empty() ? 0 : static_cast<unsigned char>(input[0]);
    const std::string_view payload = input.substr(input.empty() ? 0 : 1).substr(0, wanted);
    std::ranges::copy(payload, page + page_bytes);
    input.remove_prefix(std::min(input.size(), payload.size() + 1));
    if (sealed) seal(page, stride, example);
  }
  return bytes;
}

void read_chunk(BlockFile& store, int chunk) {
  const Image image(small_table().chunks[static_cast<std::size_t>(chunk)].bytes, 0);
  if (store.version(chunk) > covered) found("a chunk of a version that no record covers");
  store.read(chunk, chunk + 1, image.data);
  store.read_part(chunk, 1, {image.data, image.size - 1});
}

/// Whatever is found can be read, and what is written over it is there when the store is opened again.
void use_store(const fs::path& folder) {
  const ChunkTable& table = small_table();
  const int chunks = static_cast<int>(table.chunks.size());
  {
    BlockFile store(folder, table, Storage::bf16, small_options());
    for (int c = 0; c < chunks; ++c) {
      if (store.holds(c)) read_chunk(store, c);
      store.write(c, c + 1, image_of(table, c, c + 1, covered).data, covered);
    }
    store.sync();
  }
  BlockFile store(folder, table, Storage::bf16, small_options());
  for (int c = 0; c < chunks; ++c) {
    if (!store.holds(c)) found("a chunk that was written is lost");
    const Image image(table.chunks[static_cast<std::size_t>(c)].bytes, 0);
    store.read(c, c + 1, image.data);
    if (const std::string what = difference(table, c, covered, image.data); !what.empty())
      found("a chunk that was written is another: " + what);
  }
}

bool read_store(std::string_view input) {
  static const fs::path folder = fuzz_folder("store");
  static const std::string example = [] {  // of a store as it should be
    BlockFile store(folder, small_table(), Storage::bf16, small_options());
    store.write(0, 1, image_of(small_table(), 0, 1, 1).data, 1);
    const std::string bytes = file_bytes(folder / "chunks.bin");
    return bytes.substr(bytes.find("DZOSLOT"), header_bytes);
  }();
  static const std::string good_header = file_bytes(folder / "store.json");
  const std::vector<std::string_view> parts = parts_of(input, 2);
  const std::string_view slots = parts.size() > 1 ? parts[1] : std::string_view();
  const auto use = [&](std::string_view header, bool sealed) {
    write_bytes(folder / "store.json", header);
    write_bytes(folder / "chunks.bin", slots_of(slots, sealed, example));
    return accepted([&] { use_store(folder); });
  };
  use(parts[0], false);
  for (const bool sealed : {false, true})
    if (!use(good_header, sealed)) found("a store is refused for its slots");
  return true;
}

const RegisteredTarget store_target("store", read_store);

}  // namespace
}  // namespace distzo2
