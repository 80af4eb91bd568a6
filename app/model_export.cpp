// SPDX-License-Identifier: BSD-3-Clause
#include "app/model_export.hpp"

#include "io/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace distzo2 {
namespace {

DType dtype_of(Storage storage) {
  switch (storage) {
    case Storage::fp32:
      return DType::f32;
    case Storage::bf16:
      return DType::bf16;
    case Storage::fp16:
      return DType::f16;
  }
  return DType::f32;
}

}  // namespace

bool overflows_fp16(float value) {
  return std::isfinite(value) && std::abs(value) >= 65520.0F;
}

std::string export_problem(const ParameterStore& store) {
  if (store.rule().storage != Storage::fp16) return {};
  const TensorTable& table = store.table();
  std::vector<float> values;
  for (int i = 0; i < std::ssize(table.tensors); ++i) {
    const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
    if (t.matrix) continue;
    values.resize(static_cast<std::size_t>(t.size()));
    store.read(i, 0, values);
    const auto found = std::ranges::find_if(values, overflows_fp16);
    if (found != values.end()) return fmt::format("tensor \"{}\" holds {}, which fp16 cannot hold", t.name, *found);
  }
  return {};
}

void export_model(const ParameterStore& store, const std::filesystem::path& base, const std::filesystem::path& folder,
                  IfExists if_exists, const std::function<void(std::uint64_t)>& check) {
  const TensorTable& table = store.table();
  // One-dimensional tensors are stored in fp32 but leave in the matrices' precision, as model folders have them.
  const DType dtype = dtype_of(store.rule().storage);
  std::vector<TensorDeclaration> declarations;
  for (const Tensor& t : table.tensors)
    declarations.push_back({t.name, dtype, t.matrix ? std::vector{t.rows, t.cols} : std::vector{t.cols}});
  CheckpointWriter writer(folder, base, declarations, {.replace = if_exists == IfExists::replace});
  const std::uint64_t digest = store.digest([&](int tensor, std::span<const float> values) {
    writer.write(table.tensors[static_cast<std::size_t>(tensor)].name, values);
  });
  if (check) check(digest);
  writer.finish();
}

}  // namespace distzo2
