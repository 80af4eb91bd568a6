// SPDX-License-Identifier: BSD-3-Clause
#include "io/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

TEST(Units, numbers_are_taken_whole_or_not_at_all) {
  EXPECT_EQ(parse_number("1"), 1.0);
  EXPECT_EQ(parse_number("+1.5"), 1.5);
  EXPECT_EQ(parse_number("-.5"), -0.5);
  EXPECT_EQ(parse_number("1."), 1.0);
  EXPECT_EQ(parse_number("1e-6"), 1e-6);
  EXPECT_EQ(parse_number("4E+2"), 400.0);
  for (const char* bad : {"",      "-",   ".",   "e5",  "1e",   "1e+",   "1 ",     " 1",  "12abc", "0x10",
                          "1_000", "1,5", "nan", "inf", ".inf", "1e999", "1e-999", "+-1", "--1",   "++1"}) {
    EXPECT_FALSE(parse_number(bad)) << bad;
  }
}

TEST(Units, integers_end_at_sixty_four_bits) {
  EXPECT_EQ(parse_integer("1234567890123"), 1234567890123);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  EXPECT_FALSE(parse_integer("9223372036854775808"));
  EXPECT_EQ(parse_unsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_unsigned("18446744073709551616"));
  EXPECT_FALSE(parse_unsigned("-1"));
  EXPECT_EQ(parse_integer("0"), 0);
  for (const char* bad : {"", "-", "+", "+7", "+-1", "010", "1.0", "1e3", "12abc", " 1", "1 ", "0x1F", "1_000"}) {
    EXPECT_FALSE(parse_integer(bad)) << bad;
  }
}

TEST(Units, durations_have_units_or_are_clocks) {
  EXPECT_EQ(parse_duration("120 s"), 120.0);
  EXPECT_EQ(parse_duration("120s"), 120.0);
  EXPECT_EQ(parse_duration("250 ms"), 0.25);
  EXPECT_EQ(parse_duration("30 min"), 1800.0);
  EXPECT_EQ(parse_duration("1.5 h"), 5400.0);
  EXPECT_EQ(parse_duration("2 d"), 172800.0);
  EXPECT_EQ(parse_duration("11:30:00"), 41400.0);
  EXPECT_EQ(parse_duration("100:00:01"), 360001.0);
  EXPECT_EQ(parse_duration("2-01:00:05"), 176405.0);
  EXPECT_EQ(parse_duration("0 s"), 0.0);
  for (const char* bad : {"", "120", "s", "-1 s", "11:30", "11:60:00", "11:30:60", "1:2:3", "11:30:000", "a:30:00",
                          "120 sec", "120 S", "1 m", "1 s s", "-1-00:00:00", "999999999:00:00", "1:30:00 h"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Units, bytes_have_units) {
  EXPECT_EQ(parse_bytes("6 GiB"), 6442450944u);
  EXPECT_EQ(parse_bytes("512MiB"), 536870912u);
  EXPECT_EQ(parse_bytes("1.5 kB"), 1500u);
  EXPECT_EQ(parse_bytes("80 GB"), 80000000000u);
  EXPECT_EQ(parse_bytes("0 B"), 0u);
  for (const char* bad : {"", "6", "GiB", "-6 GiB", "6 gib", "6 G", "6 Gb", "99999999999 TiB", "6 GiB!"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Units, texts_read_back_to_the_same_value) {
  for (const double value : {0.0, 1.0, 0.1, 1e-6, 4e-5, 1.0 / 3.0, 1e300, 123456789.0}) {
    EXPECT_EQ(parse_number(number_text(value)), value);
  }
  for (const double value : {0.0, 1.0, 0.1, 1e-6, 41400.0, 1.0 / 3.0, 1e9}) {
    EXPECT_EQ(parse_duration(duration_text(value)), value) << duration_text(value);
  }
  EXPECT_EQ(number_text(4e-5), "4e-05");
  EXPECT_EQ(duration_text(41400), "41400 s");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(6442450944u), "6.0 GiB");
}

TEST(Units, nearest_name_forgives_case_swaps_and_a_few_letters) {
  const std::vector<std::string> names{"epsilon", "steps", "seed", "learning rate", "kind"};
  EXPECT_EQ(nearest_name("epsilonn", names), "epsilon");
  EXPECT_EQ(nearest_name("Steps", names), "steps");
  EXPECT_EQ(nearest_name("lerning_rate", names), "learning rate");
  EXPECT_EQ(nearest_name("sede", names), "seed");
  EXPECT_EQ(nearest_name("momentum", names), "");
  EXPECT_EQ(nearest_name("x", names), "");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

}  // namespace
}  // namespace distzo2
