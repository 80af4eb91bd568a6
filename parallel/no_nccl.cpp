// SPDX-License-Identifier: BSD-3-Clause
#include "core/error.hpp"
#include "parallel/nccl_gather.hpp"

namespace distzo2 {

// A program without NCCL; nccl_gather.cpp holds the other form.

namespace {

[[noreturn]] void refuse_nccl() {
  throw Error(ExitCode::internal, "NCCL is " + describe_nccl());
}

}  // namespace

std::string nccl_version() {
  return {};
}

std::string describe_nccl() {
  return "not built in";
}

std::string make_nccl_id() {
  refuse_nccl();
}

std::unique_ptr<BlockGather> make_nccl_gather(const std::string&, int, int, void*, const std::string&) {
  refuse_nccl();
}

std::unique_ptr<BlockGather> make_nccl_gather(Communicator&, void*, const std::string&) {
  refuse_nccl();
}

}  // namespace distzo2
