// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/device_map.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace distzo2 {
namespace {

RankPlace place_on(const std::string& host, const std::string& device_id) {
  return {host, "0", "0", "NVIDIA H200 at 0000:1B:00.0", device_id, ""};
}

std::string refusal(const std::vector<RankPlace>& places) {
  try {
    refuse_shared_device(places);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return {};
}

TEST(DeviceMap, gives_each_rank_of_a_node_the_next_device_unless_it_is_told_another) {
  EXPECT_EQ(device_of_rank(0, 4, {}), 0);
  EXPECT_EQ(device_of_rank(3, 4, {}), 3);
  EXPECT_EQ(device_of_rank(5, 4, {}), 1);
  EXPECT_EQ(device_of_rank(5, 4, 2), 2);
  try {
    device_of_rank(0, 2, 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "parallel/device: 2, but this process sees 2 devices; accepted: 0 to 1, or auto");
  }
}

TEST(DeviceMap, refuses_two_ranks_on_one_device_and_says_what_to_do) {
  EXPECT_EQ(refusal({place_on("a", "11"), place_on("a", "12"), place_on("b", "11")}), "");
  EXPECT_EQ(refusal({place_on("a", ""), place_on("a", "")}), "");  // ranks that compute on the host
  const std::vector<RankPlace> two{place_on("b", "10"), place_on("a", "11"), place_on("a", "12"), place_on("a", "11")};
  EXPECT_TRUE(shares_device(two));
  const std::string text = refusal(two);
  EXPECT_TRUE(text.starts_with("ranks 1 and 3 on a would both compute on NVIDIA H200 at 0000:1B:00.0: ")) << text;
  EXPECT_NE(text.find("(3 were started there)"), std::string::npos) << text;
  EXPECT_NE(text.find("parallel/device"), std::string::npos) << text;
}

TEST(DeviceMap, says_what_lies_between_devices) {
  EXPECT_EQ(describe_links({}), "");
  const std::vector<std::pair<int, DeviceLink>> links{{1, DeviceLink::pcie},   {2, DeviceLink::nvlink},
                                                      {3, DeviceLink::nvlink}, {5, DeviceLink::host},
                                                      {6, DeviceLink::same},   {7, DeviceLink::unseen}};
  EXPECT_EQ(describe_links(links),
            "NVLink to ranks 2, 3, PCIe to rank 1, host memory to rank 5, one device with rank 6, unknown link to rank "
            "7");
}

}  // namespace
}  // namespace distzo2
