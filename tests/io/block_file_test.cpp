// SPDX-License-Identifier: BSD-3-Clause
#include "io/block_file.hpp"

#include "core/error.hpp"
#include "tests/io/chunk_fixture.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// Sizes of whole pages, odd ones, one beyond bounce buffers of 256 KiB, and one of less than a page.
const ChunkTable odd_table = table_of({{8192, 4096, 12288}, {5000, 4097, 1500000, 1, 4095}, {100}});

std::unique_ptr<BlockFile> open_store(const fs::path& folder, const ChunkTable& table, BlockFileOptions options = {}) {
  return std::make_unique<BlockFile>(folder, table, Storage::bf16, options);
}

/// Overwrites bytes of the store's data file.
void damage(const fs::path& folder, std::uint64_t at, const std::string& bytes) {
  std::fstream file(folder / "chunks.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good());
}

/// Where in the data file `needle` stands.
std::uint64_t place_of(const fs::path& folder, const std::byte* needle, std::size_t bytes) {
  const std::string data = file_bytes(folder / "chunks.bin");
  const std::size_t at = data.find(std::string(reinterpret_cast<const char*>(needle), bytes));
  EXPECT_NE(at, std::string::npos);
  return at;
}

/// Reads a block and checks every chunk, and that nothing beside it was written.
void expect_block(BlockFile& store, const ChunkTable& table, int block, std::uint32_t version, std::size_t skew) {
  const int begin = table.block_begin[static_cast<std::size_t>(block)];
  const int end = table.block_begin[static_cast<std::size_t>(block) + 1];
  const Chunk& last = table.chunks[static_cast<std::size_t>(end) - 1];
  const Image image(last.offset + last.bytes, skew);
  store.read(begin, end, image.data);
  for (int c = begin; c < end; ++c) {
    EXPECT_TRUE(store.holds(c));
    EXPECT_EQ(store.version(c), version);
    EXPECT_EQ(difference(table, c, version, image.data + table.chunks[static_cast<std::size_t>(c)].offset), "");
  }
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(image.data[image.size + i], std::byte{0xaa});
}

void write_block(BlockFile& store, const ChunkTable& table, int block, std::uint32_t version, std::size_t skew = 0) {
  const int begin = table.block_begin[static_cast<std::size_t>(block)];
  const int end = table.block_begin[static_cast<std::size_t>(block) + 1];
  store.write(begin, end, image_of(table, begin, end, version, skew).data, version);
}

/// Whether this file system takes a direct write of a whole page.
bool direct_io_works(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  const Image page(4096, 0);
  const bool works = ::pwrite(fd, page.data, 4096, 0) == 4096;
  ::close(fd);
  return works;
}

TEST(BlockFile, reads_back_what_was_written_whatever_sizes_and_addresses_and_way) {
  const TemporaryFolder folder;
  const bool can_be_direct = direct_io_works(folder / "probe");
  for (const bool direct : {true, false})
    for (const std::size_t skew : {std::size_t{0}, std::size_t{1}, std::size_t{512}}) {
      const fs::path path = folder / ("store" + std::to_string(direct) + std::to_string(skew));
      const auto store = open_store(path, odd_table, {.direct = direct});
      EXPECT_FALSE(store->holds(3));
      for (std::uint32_t version = 0; version < 4; ++version)
        for (int block = 0; block < 3; ++block) {
          write_block(*store, odd_table, block, version, skew);
          expect_block(*store, odd_table, block, version, (skew + 1) % 513);
          expect_block(*store, odd_table, block, version, 0);
        }
      EXPECT_EQ(store->direct(), direct && can_be_direct);  // no transfer was refused for its alignment
    }
}

TEST(BlockFile, writes_the_same_file_directly_and_through_the_page_cache) {
  const TemporaryFolder folder;
  std::string files[2];
  for (const bool direct : {false, true}) {
    const auto store = open_store(folder / "store", odd_table, {.threads = 0, .direct = direct});
    for (int block = 0; block < 3; ++block) write_block(*store, odd_table, block, 7, direct ? 0 : 3);
    store->sync();
    files[direct] = file_bytes(folder / "store/chunks.bin");
    BlockFile::remove_files(folder / "store");
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST(BlockFile, reads_parts_of_a_chunk) {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "store", odd_table);
  write_block(*store, odd_table, 1, 2);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{4095}, std::size_t{1048570}, std::size_t{1499990}}) {
    std::vector<std::byte> part(10);
    store->read_part(5, offset, part);
    for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], pattern(5, 2, offset + i)) << offset;
  }
  std::vector<std::byte> beyond(11);
  EXPECT_THROW(store->read_part(5, 1499990, beyond), Error);
}

TEST(BlockFile, checks_the_parts_of_a_chunk_that_are_read_alone) {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "store", odd_table);
  write_block(*store, odd_table, 1, 2);
  store->sync();
  const Image chunk = image_of(odd_table, 5, 6, 2);  // 1,500,000 bytes
  const std::uint64_t payload = place_of(folder / "store", chunk.data, 8192);
  damage(folder / "store", payload + 700000, "\x01?");
  const auto read = [&](std::size_t offset, std::size_t bytes) {
    std::vector<std::byte> part(bytes);
    store->read_part(5, offset, part);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(part[i], pattern(5, 2, offset + i)) << offset;
  };
  read(0, 690000);  // what is far from the damage is whole
  read(710000, 790000);
  for (const std::size_t offset : {std::size_t{699999}, std::size_t{700001}, std::size_t{700100}})
    expect_contains(file_error([&] { read(offset, 2); }),
                    "chunks.bin: chunk 5 (block 1, rows 0 to 1500000 of its matrix 0): its checksum does not match");
  damage(folder / "store", payload - 4096 + 64 + 1, "\x01?");  // in the hash of the first part
  expect_contains(file_error([&] { read(1400000, 2); }), "its checksum does not match");
}

TEST(BlockFile, finds_that_a_whole_but_older_chunk_stands_where_a_newer_was_written) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{8192}});
  const auto store = open_store(folder / "store", table);
  const Image older = image_of(table, 0, 1, 0), newer = image_of(table, 0, 1, 1);
  write_block(*store, table, 0, 0);
  write_block(*store, table, 0, 1);
  store->sync();
  const auto slot_of = [&](const Image& image) { return place_of(folder / "store", image.data, 8192) - 4096; };
  const std::string slot = file_bytes(folder / "store/chunks.bin").substr(slot_of(older), 4096 + 8192);
  damage(folder / "store", slot_of(newer), slot);
  std::vector<std::byte> part(10);
  expect_contains(file_error([&] { store->read_part(0, 0, part); }), "its checksum does not match");
}

TEST(BlockFile, is_found_again_with_the_versions_that_it_had) {
  const TemporaryFolder folder;
  {
    const auto store = open_store(folder / "store", odd_table);
    for (std::uint32_t version = 0; version < 3; ++version) write_block(*store, odd_table, 0, version);
    write_block(*store, odd_table, 1, 1);
  }
  std::uint64_t last = 0, of = 0;
  BlockFileOptions options;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    of = total;
  };
  const auto store = open_store(folder / "store", odd_table, options);
  EXPECT_EQ(last, 8192U + 4096 + 12288 + 5000 + 4097 + 1500000 + 1 + 4095);
  EXPECT_EQ(of, last);
  expect_block(*store, odd_table, 0, 2, 0);
  expect_block(*store, odd_table, 1, 1, 0);
  EXPECT_FALSE(store->holds(8));
}

TEST(BlockFile, grows_when_it_is_opened_with_more_spare_slots) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096, 4096}});
  {
    const auto store = open_store(folder / "store", table, {.spare_slots = 1});
    write_block(*store, table, 0, 0);
    EXPECT_EQ(fs::file_size(folder / "store/chunks.bin"), 3U * 8192);
  }
  const auto store = open_store(folder / "store", table, {.spare_slots = 5});
  EXPECT_EQ(fs::file_size(folder / "store/chunks.bin"), 7U * 8192);
  expect_block(*store, table, 0, 0, 0);
}

TEST(BlockFile, falls_back_to_the_older_version_where_the_newest_is_torn) {
  const ChunkTable table = table_of({{8192, 5000}});
  for (const bool header : {true, false}) {
    const TemporaryFolder folder;
    {
      const auto store = open_store(folder / "store", table);
      write_block(*store, table, 0, 3);
      store->sync();
      write_block(*store, table, 0, 4);
    }
    const Image newest = image_of(table, 0, 1, 4);
    const std::uint64_t payload = place_of(folder / "store", newest.data, 8192);
    damage(folder / "store", header ? payload - 4096 + 20 : payload + 8191, "?");
    const auto store = open_store(folder / "store", table);
    EXPECT_EQ(store->version(0), 3U);
    EXPECT_EQ(store->version(1), 4U);
    const Image image(8192, 0);
    store->read(0, 1, image.data);
    EXPECT_EQ(difference(table, 0, 3, image.data), "");
  }
}

TEST(BlockFile, forgets_versions_that_the_trajectory_does_not_cover) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}, {4096}});
  {
    const auto store = open_store(folder / "store", table);
    for (const std::uint32_t version : {2U, 5U}) write_block(*store, table, 0, version);
    write_block(*store, table, 1, 9);
  }
  {
    const auto store = open_store(folder / "store", table, {.covered = 4});
    EXPECT_EQ(store->version(0), 2U);
    EXPECT_FALSE(store->holds(1));
  }
  // For good: the next continuation may give record 5 other bits.
  const auto store = open_store(folder / "store", table);
  EXPECT_EQ(store->version(0), 2U);
  EXPECT_FALSE(store->holds(1));
}

TEST(BlockFile, forgets_chunks_that_other_records_led_to) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}, {4096}});
  const auto history = [](std::uint64_t run) {
    return [run](std::uint32_t version) { return version < 3 ? version : run; };  // two runs, alike for two records
  };
  {
    const auto store = open_store(folder / "store", table, {.history = history(100)});
    for (const std::uint32_t version : {2U, 5U}) write_block(*store, table, 0, version);
    write_block(*store, table, 1, 5);
  }
  EXPECT_EQ(open_store(folder / "store", table, {.history = history(100)})->version(1), 5U);
  const auto store = open_store(folder / "store", table, {.history = history(200)});
  EXPECT_EQ(store->version(0), 2U);
  EXPECT_FALSE(store->holds(1));
}

TEST(BlockFile, of_two_equal_versions_takes_the_later) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  const Image first = image_of(table, 0, 1, 0), second = image_of(table, 0, 1, 1);
  for (int i = 0; i < 4; ++i) {
    const Image& written = i % 2 == 0 ? first : second;
    {
      const auto store = open_store(folder / "store", table);
      store->write(0, 1, written.data, 6);
    }
    const auto store = open_store(folder / "store", table);
    const Image image(4096, 0);
    store->read(0, 1, image.data);
    EXPECT_TRUE(std::equal(image.data, image.data + 4096, written.data)) << i;
  }
}

TEST(BlockFile, refuses_a_store_of_something_else) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  { open_store(folder / "store", table, {.identity = 0x17}); }
  std::string message = file_error([&] { open_store(folder / "store", table, {.identity = 0x18}); });
  expect_contains(message, "store.json: key \"identity\" is \"0000000000000017\"");
  expect_contains(message, "0000000000000018 was expected: the store is of another model or run");
  expect_contains(message, "memory/scratch folder");
  expect_contains(message, "remove " + (folder / "store").string());
  message = file_error([&] { open_store(folder / "store", table_of({{4000}}), {.identity = 0x17}); });
  expect_contains(message, "another shape of model");
  message = file_error([&] { BlockFile(folder / "store", table, Storage::fp32, {.identity = 0x17}); });
  expect_contains(message, "another storage precision");
  EXPECT_NO_THROW(open_store(folder / "store", table, {.identity = 0x17}));
}

TEST(BlockFile, says_what_to_do_about_a_header_that_is_damaged) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  { open_store(folder / "store", table); }
  for (const char* text : {"", "{", "[]", "{}", R"({"format": "2"})", R"({"format": 3})", R"({"format": 2})"}) {
    std::ofstream(folder / "store/store.json") << text;
    const std::string message = file_error([&] { open_store(folder / "store", table); });
    if (std::string(text).ends_with("2}")) expect_contains(message, "this program reads format 3");
    expect_contains(message, "store/store.json: ");
    expect_contains(message, "; remove " + (folder / "store").string() + ", of which nothing is lost");
  }
  fs::remove_all(folder / "store");  // as it says
  EXPECT_NO_THROW(open_store(folder / "store", table));
}

TEST(BlockFile, refuses_more_slots_than_a_store_has) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  { write_block(*open_store(folder / "store", table, {.spare_slots = 1}), table, 0, 3); }
  const std::uint64_t most = 4 * 2 + 1024, slot = 8192;
  fs::resize_file(folder / "store/chunks.bin", most * slot);
  EXPECT_EQ(open_store(folder / "store", table, {.spare_slots = 1})->version(0), 3U);
  for (const std::uint64_t slots : {most + 1, std::uint64_t{1} << 30}) {  // as sparse files take no room
    fs::resize_file(folder / "store/chunks.bin", slots * slot);
    const std::string message = file_error([&] { open_store(folder / "store", table, {.spare_slots = 1}); });
    expect_contains(message, "chunks.bin: room for " + std::to_string(slots) + " chunks, where the store needs 2");
  }
}

TEST(BlockFile, takes_no_slot_whose_number_of_writes_would_overflow) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  { write_block(*open_store(folder / "store", table, {.threads = 0}), table, 0, 3); }
  // A whole header whose sequence is 2^63: the payload is not looked at.
  const Image payload = image_of(table, 0, 1, 3);
  const std::uint64_t page = place_of(folder / "store", payload.data, 4096) - 4096;
  std::string header = file_bytes(folder / "store/chunks.bin").substr(page, 64);
  header[31] = '\x80';  // magic, store, chunk, version, sequence
  const std::uint64_t hash = XXH3_64bits(header.data(), 56);
  damage(folder / "store", page, header.substr(0, 56) + std::string(reinterpret_cast<const char*>(&hash), sizeof hash));
  EXPECT_FALSE(open_store(folder / "store", table)->holds(0));
}

TEST(BlockFile, refuses_a_second_user) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  const auto store = open_store(folder / "store", table);
  expect_contains(file_error([&] { open_store(folder / "store", table); }), "store: another process uses this store");
}

TEST(BlockFile, names_a_chunk_that_the_disk_has_changed) {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "store", odd_table);
  write_block(*store, odd_table, 1, 0);
  store->sync();
  const Image chunk = image_of(odd_table, 4, 5, 0);
  damage(folder / "store", place_of(folder / "store", chunk.data, 4097) + 4096, "\x01?");
  const Image image(1600000, 0);
  const std::string message = file_error([&] { store->read(3, 8, image.data); });
  expect_contains(message,
                  "chunks.bin: chunk 4 (block 1, rows 0 to 4097 of its matrix 0): its checksum does not match");
}

TEST(BlockFile, says_what_is_needed_and_free_where_the_disk_is_too_small) {
  const TemporaryFolder folder;
  ChunkTable table = table_of({{4096, 4096, 4096}});
  table.slot_bytes = std::size_t{1} << 46;
  const std::string message = file_error([&] { open_store(folder / "store", table, {.spare_slots = 1}); });
  expect_contains(message, "chunks.bin: 256.0 TiB more are needed (281474976727040 bytes) and ");
  expect_contains(message, " are free on this file system; ");
  expect_contains(message, "memory/scratch folder");
  EXPECT_FALSE(fs::exists(folder / "store"));
}

TEST(BlockFile, counts_as_room_what_is_free_where_its_folder_will_be_and_what_it_has_already) {
  const TemporaryFolder folder;
  constexpr int spare = 2;
  const FileRoom before = BlockFile::room(folder / "not/yet/there", odd_table, spare);
  EXPECT_EQ(before.bytes, (9 + spare) * (4096 + 1503232));  // slots of a header and of 1,500,000 bytes in whole pages
  EXPECT_EQ(before.taken, 0);
  EXPECT_GT(before.free, 0);
  const auto store = open_store(folder / "store", odd_table, {.spare_slots = spare});
  write_block(*store, odd_table, 0, 0);
  store->sync();
  EXPECT_GE(BlockFile::room(folder / "store", odd_table, spare).taken, 8192 + 4096 + 12288);
  EXPECT_TRUE((FileRoom{.bytes = 7, .taken = 4, .free = 3}.enough()));
  EXPECT_FALSE((FileRoom{.bytes = 8, .taken = 4, .free = 3}.enough()));
}

TEST(BlockFile, reports_a_file_cut_short_and_one_that_is_gone) {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "store", odd_table);
  write_block(*store, odd_table, 0, 0);
  const Image image(1600000, 0);
  fs::resize_file(folder / "store/chunks.bin", 4096);
  expect_contains(file_error([&] { store->read(0, 3, image.data); }), "chunks.bin: cannot be read at byte ");
  fs::remove_all(folder / "store");
  const char* const gone = "chunks.bin: was removed while in use";
  expect_contains(file_error([&] { store->read(0, 3, image.data); }), gone);
  expect_contains(file_error([&] { write_block(*store, odd_table, 0, 1); }), gone);
  expect_contains(file_error([&] { store->sync(); }), gone);
}

TEST(BlockFile, removes_its_own_files_alone) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  open_store(folder / "a", table);
  BlockFile::remove_files(folder / "a");
  EXPECT_FALSE(fs::exists(folder / "a"));
  folder.write("b/letter.txt", "x");
  open_store(folder / "b", table);
  BlockFile::remove_files(folder / "b");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "b"), {}), 1);
}

TEST(BlockFile, that_is_temporary_has_no_name_from_the_start) {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    const auto store = open_store(folder / "scratch/store", odd_table, {.temporary = true});
    EXPECT_TRUE(fs::is_empty(folder / "scratch"));
    for (std::uint32_t version = 0; version < 4; ++version) write_block(*store, odd_table, 1, version);
    store->sync();
    expect_block(*store, odd_table, 1, 3, 0);
    EXPECT_FALSE(store->holds(0));  // what the one before had
    EXPECT_TRUE(fs::is_empty(folder / "scratch"));
  }
  folder.write("other/chunks.bin", "the user's");
  EXPECT_THROW(open_store(folder / "other", odd_table, {.temporary = true}), Error);
  EXPECT_EQ(file_bytes(folder / "other/chunks.bin"), "the user's");
}

TEST(BlockFile, leaves_files_of_others_of_its_names_alone) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  const fs::path data = folder / "store/chunks.bin";
  for (const std::string& text : {std::string("the user's"), std::string(10000, 'x')}) {
    folder.write("store/chunks.bin", text);
    expect_contains(file_error([&] { open_store(folder / "store", table); }),
                    data.string() + ": is in a store's place");
    EXPECT_FALSE(BlockFile::stands_in(folder / "store"));
    BlockFile::remove_files(folder / "store");
    EXPECT_EQ(file_bytes(data), text);
  }
  fs::remove(data);
  ASSERT_EQ(::mkfifo(data.c_str(), 0600), 0);
  expect_contains(file_error([&] { open_store(folder / "store", table); }), "is in a store's place");
  fs::remove(data);
  folder.write("store/chunks.bin", std::string(8192, '\0'));  // of a creation that was killed
  EXPECT_TRUE(BlockFile::stands_in(folder / "store"));
  write_block(*open_store(folder / "store", table), table, 0, 1);
  for (const char* start : {"DZOSLOT2", "DZOSLOT3"}) {  // a store's too that another version of this program made
    folder.write("old/chunks.bin", start + std::string(8184, 'x'));
    EXPECT_TRUE(BlockFile::stands_in(folder / "old"));
  }
  damage(folder / "store", 0, "damaged");  // it still has its header
  EXPECT_TRUE(BlockFile::stands_in(folder / "store"));
  BlockFile::remove_files(folder / "store");
  EXPECT_FALSE(fs::exists(folder / "store"));
}

TEST(BlockFile, says_what_stands_in_its_folders_place) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  folder.write("file", "the user's");
  expect_contains(file_error([&] { open_store(folder / "file", table); }),
                  (folder / "file").string() + ": is no folder; move it away");
  fs::create_symlink("nowhere", folder / "link");
  expect_contains(file_error([&] { open_store(folder / "link", table); }),
                  (folder / "link").string() + ": is a link to nowhere, which is not there; make that folder");
}

TEST(BlockFile, counts_headers_and_whole_pages) {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "store", table_of({{5000, 4096}}));
  store->write(0, 2, image_of(table_of({{5000, 4096}}), 0, 2, 0).data, 0);
  EXPECT_EQ(store->bytes_written(), 4096U + 8192 + 4096 + 4096);
  const Image image(9096, 0);
  store->read(0, 2, image.data);
  EXPECT_EQ(store->bytes_read(), 8192U + 4096);
}

TEST(BlockFile, reads_and_writes_other_chunks_at_once) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({std::vector<std::size_t>(8, 65536), std::vector<std::size_t>(8, 65536)});
  const auto store = open_store(folder / "store", table, {.spare_slots = 16});
  for (int block = 0; block < 2; ++block) write_block(*store, table, block, 0);
  for (std::uint32_t version = 1; version < 12; ++version) {
    std::thread writer([&] { write_block(*store, table, 1, version); });
    expect_block(*store, table, 0, version - 1, 0);
    writer.join();
    write_block(*store, table, 0, version);
    expect_block(*store, table, 1, version, 0);
  }
}

}  // namespace
}  // namespace distzo2
