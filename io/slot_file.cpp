// SPDX-License-Identifier: BSD-3-Clause
#include "io/slot_file.hpp"

#include "core/chunk_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

static_assert(std::endian::native == std::endian::little, "slots are written as they stand in memory");

constexpr std::size_t bounce_bytes = std::size_t{1} << 18;
constexpr std::size_t scratch_bytes = 2 * page_bytes + bounce_bytes;
constexpr std::uint64_t slot_magic = 0x32544f4c534f5a44;  // "DZOSLOT2"

struct HeaderOnDisk {
  std::uint64_t magic = slot_magic;
  SlotHeader header;
  std::uint64_t header_hash = 0;
};
static_assert(sizeof(HeaderOnDisk) == 64 && sizeof(HeaderOnDisk) <= page_bytes);

std::uint64_t hash_of(const HeaderOnDisk& h) {
  return XXH3_64bits(&h, offsetof(HeaderOnDisk, header_hash));
}

void encode(const SlotHeader& header, std::byte* page) {
  HeaderOnDisk h;
  h.header = header;
  h.header_hash = hash_of(h);
  std::memset(page, 0, page_bytes);
  std::memcpy(page, &h, sizeof h);
}

std::optional<SlotHeader> decode(const std::byte* page) {
  HeaderOnDisk h;
  std::memcpy(&h, page, sizeof h);
  if (h.magic != slot_magic || h.header_hash != hash_of(h)) return std::nullopt;
  return h.header;
}

/// At most three parts of a transfer.
struct Parts {
  std::array<iovec, 3> list{};
  std::size_t count = 0;
  void add(const std::byte* p, std::size_t bytes) {
    if (bytes > 0) list[count++] = {const_cast<std::byte*>(p), bytes};
  }
  std::span<iovec> span() { return {list.data(), count}; }
};

}  // namespace

bool begins_with_slots(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;  // to read a pipe may wait for ever
  std::string page(page_bytes, '\0');
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  in.read(page.data(), static_cast<std::streamsize>(page.size()));
  std::uint64_t magic = 0;
  std::memcpy(&magic, page.data(), sizeof magic);
  return magic == slot_magic || page.find_first_not_of('\0') == std::string::npos;
}

std::byte* SlotFile::Scratch::tail() const {
  return pages.get() + page_bytes;
}
std::byte* SlotFile::Scratch::bounce() const {
  return pages.get() + 2 * page_bytes;
}

/// Pages for the time of one transfer.
class SlotFile::Lease {
public:
  explicit Lease(SlotFile& file) : file_(file) {
    {
      const std::lock_guard lock(file_.mutex_);
      if (!file_.idle_.empty()) {
        scratch_ = std::move(file_.idle_.back());
        file_.idle_.pop_back();
      }
    }
    if (!scratch_) scratch_ = std::make_unique<Scratch>(make_page_buffer(scratch_bytes));
  }
  ~Lease() {
    const std::lock_guard lock(file_.mutex_);
    file_.idle_.push_back(std::move(scratch_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  const Scratch* operator->() const { return scratch_.get(); }

private:
  SlotFile& file_;
  std::unique_ptr<Scratch> scratch_;
};

SlotFile::SlotFile(const std::filesystem::path& path, std::size_t payload_bytes, bool try_direct, int transfers)
    : file_(path, try_direct), stride_(page_bytes + payload_bytes) {
  idle_.reserve(2 * static_cast<std::size_t>(transfers));
  for (int i = 0; i < transfers; ++i) idle_.push_back(std::make_unique<Scratch>(make_page_buffer(scratch_bytes)));
}

std::uint64_t SlotFile::memory_bytes(int transfers) {
  return static_cast<std::uint64_t>(transfers) * scratch_bytes;
}

std::uint64_t SlotFile::payload_at(std::uint64_t slot) const {
  return slot * stride_ + page_bytes;
}

void SlotFile::read_at(std::uint64_t offset, std::span<iovec> parts) {
  std::uint64_t bytes = 0;
  for (const iovec& p : parts) bytes += p.iov_len;
  file_.read(offset, parts);
  read_.fetch_add(bytes, std::memory_order_relaxed);
}

void SlotFile::write_at(std::uint64_t offset, std::span<iovec> parts) {
  std::uint64_t bytes = 0;
  for (const iovec& p : parts) bytes += p.iov_len;
  file_.write(offset, parts);
  written_.fetch_add(bytes, std::memory_order_relaxed);
}

void SlotFile::write(std::uint64_t slot, SlotHeader& header, const std::byte* payload) {
  const Lease scratch(*this);
  const std::size_t bytes = header.bytes, whole = bytes / page_bytes * page_bytes;
  header.payload_hash = XXH3_64bits(payload, bytes);
  encode(header, scratch->header());
  const auto fill_tail = [&](std::byte* to, const std::byte* from, std::size_t n) {
    std::memcpy(to, from, n);
    std::memset(to + n, 0, round_up_to_page(n) - n);
  };
  Parts parts;
  parts.add(scratch->header(), page_bytes);
  if (!file_.direct() || page_aligned(payload)) {
    parts.add(payload, whole);
    if (whole < bytes) {
      fill_tail(scratch->tail(), payload + whole, bytes - whole);
      parts.add(scratch->tail(), page_bytes);
    }
  } else {
    // The header goes last, so that it vouches for nothing that was not written.
    for (std::size_t at = bounce_bytes; at < bytes; at += bounce_bytes) {
      const std::size_t n = std::min(bounce_bytes, bytes - at);
      fill_tail(scratch->bounce(), payload + at, n);
      Parts later;
      later.add(scratch->bounce(), round_up_to_page(n));
      write_at(payload_at(slot) + at, later.span());
    }
    const std::size_t n = std::min(bounce_bytes, bytes);
    fill_tail(scratch->bounce(), payload, n);
    parts.add(scratch->bounce(), round_up_to_page(n));
  }
  write_at(slot * stride_, parts.span());
}

/// use(piece, n) for bytes [begin, end) of the payload, in order, as they pass through the scratch pages.
template <class Use>
void SlotFile::read_bounced(std::uint64_t slot, std::size_t begin, std::size_t end, Use&& use) {
  const Lease scratch(*this);
  for (std::size_t at = begin / page_bytes * page_bytes; at < end; at += bounce_bytes) {
    Parts parts;
    parts.add(scratch->bounce(), std::min(bounce_bytes, round_up_to_page(end) - at));
    read_at(payload_at(slot) + at, parts.span());
    const std::size_t skip = begin > at ? begin - at : 0;
    use(scratch->bounce() + skip, std::min(bounce_bytes, end - at) - skip);
  }
}

std::uint64_t SlotFile::read(std::uint64_t slot, std::size_t bytes, std::byte* payload) {
  if (file_.direct() && !page_aligned(payload)) {
    std::byte* to = payload;
    read_bounced(slot, 0, bytes, [&](const std::byte* piece, std::size_t n) {
      std::memcpy(to, piece, n);
      to += n;
    });
  } else {
    const Lease scratch(*this);
    const std::size_t whole = bytes / page_bytes * page_bytes;
    Parts parts;
    parts.add(payload, whole);
    // The page that holds the end of the chunk must not overwrite what follows in memory.
    if (whole < bytes) parts.add(scratch->tail(), page_bytes);
    read_at(payload_at(slot), parts.span());
    if (whole < bytes) std::memcpy(payload + whole, scratch->tail(), bytes - whole);
  }
  return XXH3_64bits(payload, bytes);
}

std::uint64_t SlotFile::hash(std::uint64_t slot, std::size_t bytes) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  read_bounced(slot, 0, bytes, [&](const std::byte* piece, std::size_t n) { XXH3_64bits_update(&state, piece, n); });
  return XXH3_64bits_digest(&state);
}

void SlotFile::read_part(std::uint64_t slot, std::size_t offset, std::span<std::byte> to) {
  std::byte* next = to.data();
  read_bounced(slot, offset, offset + to.size(), [&](const std::byte* piece, std::size_t n) {
    std::memcpy(next, piece, n);
    next += n;
  });
}

std::optional<SlotHeader> SlotFile::header(std::uint64_t slot) {
  const Lease scratch(*this);
  Parts parts;
  parts.add(scratch->header(), page_bytes);
  read_at(slot * stride_, parts.span());
  return decode(scratch->header());
}

void SlotFile::erase_header(std::uint64_t slot) {
  const Lease scratch(*this);
  std::memset(scratch->header(), 0, page_bytes);
  Parts parts;
  parts.add(scratch->header(), page_bytes);
  write_at(slot * stride_, parts.span());
}

}  // namespace distzo2
