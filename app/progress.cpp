// SPDX-License-Identifier: BSD-3-Clause
#include "app/progress.hpp"

#include "app/process_status.hpp"
#include "app/terminal.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

namespace distzo2 {
namespace {

constexpr const char* wipe = "\r\x1b[K";

void write_out(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::uint64_t resident_bytes() {
  return process_status("self", "VmRSS:") * 1024;
}
std::uint64_t peak_resident_bytes() {
  return process_status("self", "VmHWM:") * 1024;
}

double seconds_since_process_start() {
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  // Field 22, in clock ticks since the machine started; the name, field 2, may hold blanks but ends at the last ')'.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now{};
  if (!fields || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0.0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(field) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string short_duration(double seconds) {
  const auto s = static_cast<long>(std::ceil(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

Progress::Progress(Interval log_every, std::uint32_t steps, bool speaks)
    : speaks_(speaks), terminal_(prints_to_terminal()), log_every_(log_every), steps_(steps) {}

Progress::~Progress() {
  if (live_) write_out("\n");  // which stays to be read
}

void Progress::print(const std::string& text, bool live) {
  const std::lock_guard lock(printing_);
  if (ended_) return;
  write_out((live_ || live ? wipe : "") + text + (live ? "" : "\n"));
  live_ = live;
}

void Progress::end() {
  const std::unique_lock lock(printing_, std::chrono::milliseconds(100));
  if (!lock || std::exchange(ended_, true)) return;
  // Another rank's live line may stand on the terminal that they have in common.
  const bool wipes = std::exchange(live_, false) || (!speaks_ && terminal_);
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (!wipes || ::poll(&out, 1, 0) != 1) return;
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, wipe, std::strlen(wipe));  // if not, it stands there
}

void Progress::say(const std::string& text) {
  if (!speaks_) return;
  print(text, false);
}

void Progress::working(const std::string& text) {
  if (!speaks_) return;
  if (terminal_) {
    print(text, true);
    return;
  }
  const auto now = std::chrono::steady_clock::now();  // in a log, now and then
  if (now - last_working_ < std::chrono::seconds(10)) return;
  last_working_ = now;
  say(text);
}

ByteProgress shown_by(Progress* progress) {
  if (progress == nullptr) return nullptr;
  return [progress](const char* what, std::uint64_t done, std::uint64_t total) {
    progress->working(fmt::format("{}: {} of {}", what, bytes_text(done), bytes_text(total)));
  };
}

void Progress::step(std::uint32_t step, double loss, double g, std::uint64_t tokens, double seconds, double left_s) {
  if (!speaks_) return;
  const double weight = steps_seen_ == 0 ? 1.0 : std::max(0.05, 1.0 / (steps_seen_ + 1.0));
  if (std::isfinite(loss)) loss_ += weight * (loss - loss_);
  tokens_per_second_ = seconds > 0
                           ? tokens_per_second_ + weight * (static_cast<double>(tokens) / seconds - tokens_per_second_)
                           : tokens_per_second_;
  ++steps_seen_;
  const auto now = std::chrono::steady_clock::now();
  const bool last = step + 1 == steps_;
  const auto since = [&](std::chrono::steady_clock::time_point t) {
    return std::chrono::duration<double>(now - t).count();
  };
  const auto text = [&] {
    return fmt::format("step {:>{}}/{}  loss {:.4f}  g {:+.3f}  {:.0f} tokens/s  host {}  left {}", step + 1,
                       fmt::formatted_size("{}", steps_), steps_, loss_, g, tokens_per_second_,
                       bytes_text(resident_bytes()), short_duration(left_s));
  };
  const bool due = log_every_.steps != 0 ? (step + 1) % log_every_.steps == 0 : since(last_log_) >= log_every_.seconds;
  if (!terminal_) {
    if (due || last || steps_seen_ == 1) {
      print(text(), false);
      last_log_ = now;
    }
  } else if (last || since(last_draw_) >= 0.1) {
    print(text(), true);
    last_draw_ = now;
  }
}

}  // namespace distzo2
