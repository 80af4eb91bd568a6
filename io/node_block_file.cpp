// SPDX-License-Identifier: BSD-3-Clause
#include "io/node_block_file.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace distzo2 {

NodeBlockFile::NodeBlockFile(NodeMemory* memory, const std::filesystem::path& folder, const ChunkTable& table,
                             Storage storage, const BlockFileOptions& options)
    : folder_(folder), chunks_(static_cast<int>(table.chunks.size())) {
  if (memory != nullptr)
    words_ = words_ =
        std::make_unique<NodeSlices>(*memory, node_disk_words(chunks_), "what it writes to " + folder.string());
  const bool first = memory == nullptr || memory->owner() == 0;
  if (first) file_ = std::make_unique<BlockFile>(folder, table, storage, options);
  for (int c = 0; first && c < chunks_; ++c) tell(c);
  if (words_) words_->meet();
  if (first) return;
  rows_ = std::make_unique<SlotFile>(BlockFile::data_file(folder), table.slot_bytes, options.direct, options.callers);
  for (int c = 0; c < chunks_; ++c) versions_.push_back(words_->published_by(0, c));
}

/// Where the chunk lies now and then its version: who waits for the version finds the place.
void NodeBlockFile::tell(int chunk) {
  if (!words_ || !file_->holds(chunk)) return;
  words_->publish(chunks_ + chunk, static_cast<std::uint32_t>(file_->slot(chunk)));
  words_->publish(chunk, file_->version(chunk) + 1);
}

void NodeBlockFile::read(int begin, int end, std::byte* image) {
  if (!file_) throw Error(ExitCode::internal, "a rank reads a unit from the store of another");
  file_->read(begin, end, image);
}

void NodeBlockFile::read_part(int chunk, std::size_t offset, std::span<std::byte> to) {
  if (file_) return file_->read_part(chunk, offset, to);
  words_->wait_for_owner(0, chunk, versions_[static_cast<std::size_t>(chunk)]);
  rows_->read_part(words_->published_by(0, chunks_ + chunk), offset, to);
}

void NodeBlockFile::write(int begin, int end, const std::byte* image, std::uint32_t version) {
  if (!file_) {
    std::fill(versions_.begin() + begin, versions_.begin() + end, version + 1);
    return;
  }
  file_->write(begin, end, image, version);
  for (int c = begin; c < end; ++c) tell(c);
}

bool NodeBlockFile::holds(int chunk) const {
  return file_ ? file_->holds(chunk) : versions_[static_cast<std::size_t>(chunk)] > 0;
}

std::uint32_t NodeBlockFile::version(int chunk) const {
  return file_ ? file_->version(chunk) : versions_[static_cast<std::size_t>(chunk)] - 1;
}

void NodeBlockFile::sync() {
  if (file_) file_->sync();
}

void NodeBlockFile::remove() {
  if (file_) file_->remove();
}

}  // namespace distzo2
