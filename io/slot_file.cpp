// SPDX-License-Identifier: BSD-3-Clause
#include "io/slot_file.hpp"

#include "core/chunk_table.hpp"
#include "core/round_up.hpp"

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
constexpr std::uint64_t slot_magic = 0x33544f4c534f5a44;  // "DZOSLOT3"; the last byte is the format's

struct HeaderOnDisk {
  std::uint64_t magic = slot_magic;
  SlotHeader header;
  std::uint64_t header_hash = 0;
};
static_assert(sizeof(HeaderOnDisk) == 64);

// The hashes of the parts follow. Parts are small, since whoever looks a row up reads all of those that hold it, and
// large enough for a page to hold the hashes of a whole slot.
constexpr std::size_t most_parts = (page_bytes - sizeof(HeaderOnDisk)) / sizeof(std::uint64_t);
constexpr std::size_t least_part_bytes = page_bytes;

std::size_t part_bytes_of(std::size_t payload_bytes) {
  std::size_t bytes = least_part_bytes;
  while (pieces_of(payload_bytes, bytes) > most_parts) bytes *= 2;
  return bytes;
}

std::uint64_t hash_listed(const std::byte* page, std::size_t part) {
  std::uint64_t hash = 0;
  std::memcpy(&hash, page + sizeof(HeaderOnDisk) + part * sizeof hash, sizeof hash);
  return hash;
}

/// Calls done(hash) for each part of bytes that come in pieces of any size.
template <class Done>
class PartHashes {
public:
  PartHashes(std::size_t part_bytes, Done done) : part_bytes_(part_bytes), done_(std::move(done)) {}
  void add(const std::byte* p, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t n = std::min(bytes, part_bytes_ - filled_);
      if (n == part_bytes_) {
        done_(XXH3_64bits(p, n));
      } else {
        if (filled_ == 0) XXH3_64bits_reset(&state_);
        XXH3_64bits_update(&state_, p, n);
        filled_ += n;
        if (filled_ == part_bytes_) finish();
      }
      p += n;
      bytes -= n;
    }
  }
  /// The last part may be short.
  void finish() {
    if (filled_ > 0) done_(XXH3_64bits_digest(&state_));
    filled_ = 0;
  }

private:
  std::size_t part_bytes_, filled_ = 0;
  Done done_;
  XXH3_state_t state_;
};

/// The hash of a payload by those of its parts.
class PayloadHash {
public:
  PayloadHash() { XXH3_64bits_reset(&state_); }
  void add(std::uint64_t part) { XXH3_64bits_update(&state_, &part, sizeof part); }
  std::uint64_t digest() const { return XXH3_64bits_digest(&state_); }

private:
  XXH3_state_t state_;
};

std::uint64_t hash_of_parts(const std::byte* payload, std::size_t bytes, std::size_t part_bytes) {
  PayloadHash whole;
  PartHashes parts(part_bytes, [&](std::uint64_t hash) { whole.add(hash); });
  parts.add(payload, bytes);
  parts.finish();
  return whole.digest();
}

std::uint64_t hash_of(const HeaderOnDisk& h) {
  return XXH3_64bits(&h, offsetof(HeaderOnDisk, header_hash));
}

/// Makes a header's page, and fills in the hash of the payload.
void encode(SlotHeader& header, const std::byte* payload, std::size_t part_bytes, std::byte* page) {
  std::memset(page, 0, page_bytes);
  std::byte* next = page + sizeof(HeaderOnDisk);
  PayloadHash whole;
  PartHashes parts(part_bytes, [&](std::uint64_t hash) {
    whole.add(hash);
    std::memcpy(next, &hash, sizeof hash);
    next += sizeof hash;
  });
  parts.add(payload, header.bytes);
  parts.finish();
  header.payload_hash = whole.digest();
  HeaderOnDisk h;
  h.header = header;
  h.header_hash = hash_of(h);
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
  constexpr std::uint64_t name = ~std::uint64_t{0} >> 8;  // that of an older format is a store's as well
  return ((magic ^ slot_magic) & name) == 0 || page.find_first_not_of('\0') == std::string::npos;
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
  const Scratch& operator*() const { return *scratch_; }

private:
  SlotFile& file_;
  std::unique_ptr<Scratch> scratch_;
};

SlotFile::SlotFile(const std::filesystem::path& path, std::size_t payload_bytes, bool try_direct, int transfers)
    : file_(path, try_direct), stride_(page_bytes + payload_bytes), part_bytes_(part_bytes_of(payload_bytes)) {
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
  encode(header, payload, part_bytes_, scratch->header());
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

/// use(piece, n) for bytes [begin, end) of the payload, in order, as they pass through the scratch pages; `begin` is
/// that of a page.
template <class Use>
void SlotFile::read_bounced(const Scratch& scratch, std::uint64_t slot, std::size_t begin, std::size_t end, Use&& use) {
  for (std::size_t at = begin; at < end; at += bounce_bytes) {
    Parts parts;
    parts.add(scratch.bounce(), std::min(bounce_bytes, round_up_to_page(end) - at));
    read_at(payload_at(slot) + at, parts.span());
    use(scratch.bounce(), std::min(bounce_bytes, end - at));
  }
}

std::uint64_t SlotFile::read(std::uint64_t slot, std::size_t bytes, std::byte* payload) {
  const Lease scratch(*this);
  if (file_.direct() && !page_aligned(payload)) {
    std::byte* to = payload;
    read_bounced(*scratch, slot, 0, bytes, [&](const std::byte* piece, std::size_t n) {
      std::memcpy(to, piece, n);
      to += n;
    });
  } else {
    const std::size_t whole = bytes / page_bytes * page_bytes;
    Parts parts;
    parts.add(payload, whole);
    // The page that holds the end of the chunk must not overwrite what follows in memory.
    if (whole < bytes) parts.add(scratch->tail(), page_bytes);
    read_at(payload_at(slot), parts.span());
    if (whole < bytes) std::memcpy(payload + whole, scratch->tail(), bytes - whole);
  }
  return hash_of_parts(payload, bytes, part_bytes_);
}

std::uint64_t SlotFile::hash(std::uint64_t slot, std::size_t bytes) {
  const Lease scratch(*this);
  PayloadHash whole;
  PartHashes parts(part_bytes_, [&](std::uint64_t hash) { whole.add(hash); });
  read_bounced(*scratch, slot, 0, bytes, [&](const std::byte* piece, std::size_t n) { parts.add(piece, n); });
  parts.finish();
  return whole.digest();
}

std::optional<SlotHeader> SlotFile::read_part(std::uint64_t slot, std::size_t offset, std::span<std::byte> to) {
  const Lease scratch(*this);
  const std::optional<SlotHeader> found = read_header(*scratch, slot);
  const std::size_t to_end = offset + to.size();
  if (!found || found->bytes > stride_ - page_bytes || to_end > found->bytes) return std::nullopt;
  PayloadHash listed;
  for (std::size_t i = 0; i < pieces_of<std::size_t>(found->bytes, part_bytes_); ++i)
    listed.add(hash_listed(scratch->header(), i));
  bool whole = listed.digest() == found->payload_hash;
  std::size_t part = offset / part_bytes_, at = part * part_bytes_;
  PartHashes parts(part_bytes_, [&](std::uint64_t hash) {
    whole = whole && hash == hash_listed(scratch->header(), part);
    ++part;
  });
  const std::size_t end = std::min<std::size_t>(round_up(to_end, part_bytes_), found->bytes);
  read_bounced(*scratch, slot, at, end, [&](const std::byte* piece, std::size_t n) {
    parts.add(piece, n);
    const std::size_t first = std::max(at, offset), last = std::min(at + n, to_end);
    if (first < last) std::memcpy(to.data() + (first - offset), piece + (first - at), last - first);
    at += n;
  });
  parts.finish();
  return whole ? found : std::nullopt;
}

std::optional<SlotHeader> SlotFile::read_header(const Scratch& scratch, std::uint64_t slot) {
  Parts parts;
  parts.add(scratch.header(), page_bytes);
  read_at(slot * stride_, parts.span());
  return decode(scratch.header());
}

std::optional<SlotHeader> SlotFile::header(std::uint64_t slot) {
  const Lease scratch(*this);
  return read_header(*scratch, slot);
}

void SlotFile::erase_header(std::uint64_t slot) {
  const Lease scratch(*this);
  std::memset(scratch->header(), 0, page_bytes);
  Parts parts;
  parts.add(scratch->header(), page_bytes);
  write_at(slot * stride_, parts.span());
}

}  // namespace distzo2
