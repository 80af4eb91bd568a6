// SPDX-License-Identifier: BSD-3-Clause
#include "io/disk_store.hpp"

#include "core/error.hpp"
#include "core/node_chunks.hpp"
#include "io/block_file.hpp"
#include "tests/io/chunk_fixture.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/thread_node.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

const ChunkTable table = table_of({{8192, 5000}, {12288}});
constexpr int owners = 3;
constexpr std::uint32_t last_version = 40;

std::size_t node_bytes() {
  return round_up_to_page(NodeChunks::bytes(static_cast<int>(table.chunks.size()), owners));
}

BlockFileOptions options() {
  BlockFileOptions o;
  o.spare_slots = 2;
  return o;
}

/// All of a chunk as rows are read.
std::string difference_of(DiskStore& store, int chunk, std::uint32_t version) {
  std::vector<std::byte> bytes(table.chunks[static_cast<std::size_t>(chunk)].bytes);
  store.read_part(chunk, 0, bytes);
  return difference(table, chunk, version, bytes.data());
}

TEST(DiskStore, shows_each_rank_the_version_that_it_knows_of) {
  const TemporaryFolder folder;
  ThreadNode node(owners, node_bytes());
  std::atomic<int> arrived{0};
  // All ranks have looked at a version before the first of them writes the next but one.
  const auto meet = [&](int times) {
    ++arrived;
    while (arrived < times * owners) std::this_thread::yield();
  };
  std::vector<std::string> wrong(owners);
  std::vector<std::jthread> ranks;
  for (int owner = 0; owner < owners; ++owner)
    ranks.emplace_back([&, owner] {
      ThreadNode::Rank memory(node, owner);
      const auto store = open_disk_store(&memory, folder.path() / "store", table, Storage::bf16, options());
      std::string& problem = wrong[static_cast<std::size_t>(owner)];
      for (std::uint32_t version = 0; version <= last_version; ++version) {
        for (const auto& [begin, end] : {std::pair{0, 2}, {2, 3}})
          store->write(begin, end, owner == 0 ? image_of(table, begin, end, version).data : nullptr, version);
        for (int c = 0; c < 3; ++c) {
          if (!store->holds(c) || store->version(c) != version) problem = "version";
          problem += difference_of(*store, c, version);
        }
        meet(static_cast<int>(version) + 1);
      }
      if (owner > 0) {
        EXPECT_EQ(store->bytes_written(), 0U);
      }
    });
  ranks.clear();
  for (const std::string& problem : wrong) EXPECT_EQ(problem, "");
}

TEST(DiskStore, holds_for_all_ranks_what_was_found_and_not_what_the_first_one_writes_at_once) {
  for (int round = 0; round < 30; ++round) {
    const TemporaryFolder folder;
    ThreadNode node(owners, node_bytes());
    std::vector<int> held(owners, -1);
    std::vector<std::jthread> ranks;
    for (int owner = 0; owner < owners; ++owner)
      ranks.emplace_back([&, owner] {
        ThreadNode::Rank memory(node, owner);
        const auto store = open_disk_store(&memory, folder.path() / "store", table, Storage::bf16, options());
        held[static_cast<std::size_t>(owner)] = store->holds(0) ? 1 : 0;
        if (owner == 0) store->write(0, 2, image_of(table, 0, 2, 0).data, 0);
      });
    ranks.clear();
    EXPECT_EQ(held, std::vector<int>(owners, 0));
  }
}

TEST(DiskStore, tells_the_other_ranks_what_a_store_that_is_found_holds) {
  const TemporaryFolder folder;
  {
    const auto alone = open_disk_store(nullptr, folder.path() / "store", table, Storage::bf16, options());
    alone->write(2, 3, image_of(table, 2, 3, 7).data, 7);
    alone->sync();
  }
  ThreadNode node(owners, node_bytes());
  std::vector<std::unique_ptr<DiskStore>> stores(owners);
  std::vector<std::unique_ptr<ThreadNode::Rank>> memories;
  for (int owner = 0; owner < owners; ++owner) memories.push_back(std::make_unique<ThreadNode::Rank>(node, owner));
  {
    std::vector<std::jthread> ranks;
    for (std::size_t owner = 0; owner < owners; ++owner)
      ranks.emplace_back([&, owner] {
        stores[owner] =
            open_disk_store(memories[owner].get(), folder.path() / "store", table, Storage::bf16, options());
      });
  }
  for (const auto& store : stores) {
    EXPECT_FALSE(store->holds(0));
    EXPECT_TRUE(store->holds(2));
    EXPECT_EQ(store->version(2), 7U);
    EXPECT_EQ(difference_of(*store, 2, 7), "");
  }
  {  // and each of them checks the rows that it reads
    std::fstream file(folder / "store/chunks.bin", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096 + 100);  // chunk 2 lies in the first slot
    file.put('?');
  }
  for (const auto& store : stores) expect_contains(file_error([&] { difference_of(*store, 2, 7); }), "chunk 2");
  std::vector<std::byte> image(12288);
  EXPECT_THROW(stores[1]->read(2, 3, image.data()), Error);  // units come from the first rank
}

}  // namespace
}  // namespace distzo2
