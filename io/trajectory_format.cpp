// SPDX-License-Identifier: BSD-3-Clause
#include "io/trajectory_format.hpp"

#include "core/error.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace distzo2 {
namespace {

constexpr std::string_view magic = "ZOJ1";
constexpr std::uint32_t newest_version = 2, oldest_version = 1;
constexpr std::uint32_t header_limit = 1U << 20;
constexpr int directions_limit = 1 << 16;
enum RecordKind : std::uint32_t { step_record = 1, digest_record = 2 };

template <class T>
void put(std::string& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);  // x86-64 is little-endian
}

void put(std::string& out, const std::string& text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

template <class T>
void put(std::string& out, const std::vector<T>& values) {
  for (const T v : values) put(out, v);
}

std::uint64_t hash(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

/// Takes values from the front of a run of bytes; says whether all were there.
class Taker {
public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}
  bool good() const { return good_; }
  std::string_view rest() const { return rest_; }

  template <class T>
  T take() {
    T value{};
    if (rest_.size() < sizeof value) {
      good_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto n = take<std::uint32_t>();
    if (n > rest_.size()) {
      good_ = false;
      return {};
    }
    std::string value(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return value;
  }
  template <class T>
  void take(std::vector<T>& values, int n) {
    values.resize(static_cast<std::size_t>(n));
    for (T& v : values) v = take<T>();
  }

private:
  std::string_view rest_;
  bool good_ = true;
};

int evaluations_of(const TrajectoryHeader& h) {
  return evaluation_count(h.step.difference, h.step.directions);
}

/// An enumerator read from a file, checked.
template <class E>
E enumerator(std::uint8_t value, E last, const char* what, const std::string& name) {
  if (value > static_cast<std::uint8_t>(last))
    throw Error(ExitCode::file, fmt::format("{}: header: {} {} is unknown; at most {} here", name, what, value,
                                            static_cast<int>(last)));
  return static_cast<E>(value);
}

TrajectoryHeader decode_header(std::string_view body, std::uint32_t version, const std::string& name) {
  Taker in(body);
  TrajectoryHeader h;
  h.generator = in.take<std::uint32_t>();
  h.rule.seed = in.take<std::uint64_t>();
  h.rule.kind = enumerator(in.take<std::uint8_t>(), DirectionKind::rademacher, "kind of direction", name);
  h.rule.storage = enumerator(in.take<std::uint8_t>(), Storage::fp16, "storage precision", name);
  h.rule.rounding = enumerator(in.take<std::uint8_t>(), Rounding::nearest, "rounding", name);
  h.step.difference = enumerator(in.take<std::uint8_t>(), Difference::forward, "difference", name);
  h.objective = enumerator(in.take<std::uint8_t>(), Objective::classification, "objective", name);
  h.rule.round_every = in.take<std::uint32_t>();
  h.step.directions = static_cast<int>(in.take<std::uint32_t>());
  h.step.epsilon = in.take<double>();
  h.theta0_digest = in.take<std::uint64_t>();
  h.deck_digest = in.take<std::uint64_t>();
  h.data_digest = in.take<std::uint64_t>();
  if (version > 1) h.decay_mask = in.take<std::uint64_t>();
  h.mathematical_keys = in.text();
  h.fingerprint = in.text();
  if (!in.good() || !in.rest().empty())
    throw Error(ExitCode::file, fmt::format("{}: header: its length does not fit its fields", name));
  if (h.step.directions < 1 || h.step.directions > directions_limit)
    throw Error(ExitCode::file, fmt::format("{}: header: {} directions; accepted are 1 to {}", name, h.step.directions,
                                            directions_limit));
  if (h.rule.round_every < 1)
    throw Error(ExitCode::file, fmt::format("{}: header: round every 0; accepted are 1 and more", name));
  if (!std::isfinite(h.step.epsilon) || h.step.epsilon <= 0)
    throw Error(ExitCode::file,
                fmt::format("{}: header: epsilon {}; accepted is a finite one above 0", name, h.step.epsilon));
  if (h.generator != generator_version)
    throw Error(ExitCode::file, fmt::format("{}: made by version {} of the generator; this program has version {}",
                                            name, h.generator, generator_version));
  return h;
}

/// What an update would make theta of no numbers with; empty: nothing. A loss or g may be what it likes: a step with
/// such a one is skipped, and its record has c = 0.
std::string update_problem(const StepRecord& r) {
  for (std::size_t k = 0; k < r.c.size(); ++k)
    if (!std::isfinite(r.c[k])) return fmt::format("c[{}] = {} is not finite", k + 1, r.c[k]);
  if (!std::isfinite(r.lr)) return fmt::format("lr = {} is not finite", r.lr);
  if (!std::isfinite(r.wd)) return fmt::format("wd = {} is not finite", r.wd);
  if (!std::isfinite(decay_factor(r))) return fmt::format("lr * wd = {} * {} is too large", r.lr, r.wd);
  return {};
}

/// Whether a record is all there: its length and checksum fit.
bool intact(std::string_view record, std::size_t size) {
  const std::size_t sealed_size = size - sizeof(std::uint64_t);
  return record.size() == size &&
         Taker(record.substr(sealed_size)).take<std::uint64_t>() == hash(record.substr(0, sealed_size));
}

std::string sealed(std::string record, std::size_t size) {
  record.resize(size - sizeof(std::uint64_t));
  put(record, hash(record));
  return record;
}

}  // namespace

std::string encode_header(const TrajectoryHeader& h) {
  std::string body;
  put(body, h.generator);
  put(body, h.rule.seed);
  put(body, static_cast<std::uint8_t>(h.rule.kind));
  put(body, static_cast<std::uint8_t>(h.rule.storage));
  put(body, static_cast<std::uint8_t>(h.rule.rounding));
  put(body, static_cast<std::uint8_t>(h.step.difference));
  put(body, static_cast<std::uint8_t>(h.objective));
  put(body, h.rule.round_every);
  put(body, static_cast<std::uint32_t>(h.step.directions));
  put(body, h.step.epsilon);
  put(body, h.theta0_digest);
  put(body, h.deck_digest);
  put(body, h.data_digest);
  put(body, h.decay_mask.value());
  put(body, h.mathematical_keys);
  put(body, h.fingerprint);
  std::string out(magic);
  put(out, newest_version);
  put(out, static_cast<std::uint32_t>(body.size()));
  out += body;
  put(out, hash(out));
  return out;
}

std::size_t record_size(const TrajectoryHeader& h) {
  const auto q = static_cast<std::size_t>(h.step.directions);
  return 4 + 4 + 8 + 4 + 4 * q + 8 * q + 8 * q + 8 * static_cast<std::size_t>(evaluations_of(h)) + 8;
}

std::string encode_record(const TrajectoryHeader& h, const StepRecord& r) {
  std::string out;
  put(out, std::uint32_t{step_record});
  put(out, r.t);
  put(out, r.lr);
  put(out, r.wd);
  put(out, r.c);
  put(out, r.g);
  put(out, r.g_raw);
  put(out, r.losses);
  return sealed(std::move(out), record_size(h));
}

std::string encode_record(const TrajectoryHeader& h, const DigestRecord& r) {
  std::string out;
  put(out, std::uint32_t{digest_record});
  put(out, r.t);
  put(out, r.theta_digest);
  return sealed(std::move(out), record_size(h));
}

std::string encode_trajectory(const TrajectoryHeader& h, std::span<const StepRecord> steps,
                              std::span<const DigestRecord> digests) {
  std::string bytes = encode_header(h);
  std::size_t digest = 0;
  for (std::size_t t = 0; t <= steps.size(); ++t) {
    for (; digest < digests.size() && digests[digest].t == t; ++digest) bytes += encode_record(h, digests[digest]);
    if (t < steps.size()) bytes += encode_record(h, steps[t]);
  }
  return bytes;
}

Trajectory decode_trajectory(std::string_view bytes, const std::string& name) {
  const auto bad = [&](const std::string& what) { return Error(ExitCode::file, name + ": " + what); };
  // 1. The header.
  Taker in(bytes);
  if (bytes.substr(0, magic.size()) != magic) throw bad("not a trajectory: it does not begin with ZOJ1");
  in.take<std::uint32_t>();
  const auto version = in.take<std::uint32_t>();
  const auto length = in.take<std::uint32_t>();
  if (in.good() && (version < oldest_version || version > newest_version))
    throw bad(fmt::format("format version {}; this program reads {} to {}", version, oldest_version, newest_version));
  constexpr const char* lost =
      ": without it none of the records can be used. A copy of the file is needed, or a new run in another folder";
  if (!in.good() || length > header_limit || in.rest().size() < length + sizeof(std::uint64_t))
    throw bad(std::string("the header is cut short") + lost);
  const std::size_t start = bytes.size() - in.rest().size() + length + sizeof(std::uint64_t);
  Taker seal(bytes.substr(start - sizeof(std::uint64_t)));
  if (seal.take<std::uint64_t>() != hash(bytes.substr(0, start - sizeof(std::uint64_t))))
    throw bad(std::string("the header's checksum does not fit") + lost);
  Trajectory found;
  found.header = decode_header(in.rest().substr(0, length), version, name);
  found.whole_bytes = start;

  // 2. The records, until one is not whole. Where whole ones follow it, that is damage. Where none does, it is a torn
  //    tail: a machine that crashed can leave several unsynced records cut short or empty.
  const std::size_t size = record_size(found.header);
  const int q = found.header.step.directions;
  std::string_view rest = bytes.substr(start);
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::string_view record = rest.substr(0, size);
    Taker fields(record);
    if (!intact(record, size)) {
      for (std::string_view after = rest; after.size() > size; after.remove_prefix(size))
        if (intact(after.substr(size, size), size))
          throw bad(
              fmt::format("record {}: its checksum does not fit. Whole are the {} step{} before it; those after it "
                          "cannot be used without it. Bring back a copy of the file, or cut this one to its first "
                          "{} bytes (truncate -s): a resume then does the later steps again",
                          number, found.steps.size(), found.steps.size() == 1 ? "" : "s", found.whole_bytes));
      found.torn = true;
      break;
    }
    const auto kind = fields.take<std::uint32_t>();
    const auto t = fields.take<std::uint32_t>();
    if (kind == step_record) {
      StepRecord r;
      r.t = t;
      r.lr = fields.take<double>();
      r.wd = fields.take<float>();
      fields.take(r.c, q);
      fields.take(r.g, q);
      fields.take(r.g_raw, q);
      fields.take(r.losses, evaluations_of(found.header));
      if (t != found.steps.size())
        throw bad(fmt::format("record {}: t = {} where {} must follow", number, t, found.steps.size()));
      if (const std::string problem = update_problem(r); !problem.empty())
        throw bad(fmt::format("record {}: {}", number, problem));
      found.steps.push_back(std::move(r));
    } else if (kind == digest_record) {
      if (t != found.steps.size())
        throw bad(fmt::format("record {}: a digest of step {} after {} steps", number, t, found.steps.size()));
      found.digests.push_back({t, fields.take<std::uint64_t>()});
    } else {
      throw bad(fmt::format("record {}: kind {} is unknown", number, kind));
    }
    rest.remove_prefix(size);
    found.whole_bytes += size;
  }
  return found;
}

std::string first_difference(std::string_view a, std::string_view b) {
  const std::string_view beginning = a.substr(0, b.size());
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(beginning, b).in1 - beginning.begin());
  if (same == beginning.size()) return {};
  const Trajectory of = decode_trajectory(a, "a trajectory");
  const std::size_t size = record_size(of.header);
  const std::size_t start = of.whole_bytes - size * (of.steps.size() + of.digests.size());
  return same < start ? "the header" : fmt::format("record {}", (same - start) / size + 1);
}

std::uint64_t update_history(std::uint64_t before, const StepRecord& record) {
  std::string bytes;
  put(bytes, before);
  put(bytes, record.t);
  put(bytes, record.lr);
  put(bytes, record.wd);
  put(bytes, record.c);
  return hash(bytes);
}

std::vector<std::uint64_t> update_histories(std::span<const StepRecord> records) {
  std::vector<std::uint64_t> histories{0};
  for (const StepRecord& r : records) histories.push_back(update_history(histories.back(), r));
  return histories;
}

std::uint64_t trajectory_digest(const std::vector<StepRecord>& steps) {
  std::string bytes;
  for (const StepRecord& r : steps) {
    put(bytes, r.t);
    put(bytes, r.g);
    put(bytes, r.losses);
  }
  return hash(bytes);
}

}  // namespace distzo2
