// SPDX-License-Identifier: BSD-3-Clause
#include "io/safetensors.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "io/safetensors_writer.hpp"
#include "test_paths.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace distzo2;

std::vector<float> read_all(const SafetensorsFile& file, const std::string& name) {
  std::vector<float> values(static_cast<std::size_t>(file.tensors().at(name).elements));
  file.read(name, 0, values);
  return values;
}

/// The message with which a file of this header and data is refused.
std::string refusal_of(const std::string& header, const std::string& data = "") {
  const TemporaryFolder folder;
  const auto path = folder.write("x.safetensors", raw_safetensors(header, data));
  const std::string message = file_error([&] { SafetensorsFile{path}; });
  expect_contains(message, path.string());
  return message;
}

// Made with the safetensors package by tests/golden/make_safetensors.py; all values are exact in their types.
TEST(Safetensors, reads_a_file_of_the_python_package) {
  const SafetensorsFile file(test_paths::sources / "tests/golden/safetensors/mixed.safetensors");
  EXPECT_EQ(read_all(file, "f32"), (std::vector<float>{1.0F, -2.5F, 3.25e30F, 1e-45F, 0.0F, 7.0F}));
  EXPECT_EQ(file.tensors().at("f32").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read_all(file, "bf16"), (std::vector<float>{1.0F, -3.140625F, 0x1p100F}));
  EXPECT_EQ(read_all(file, "f16"), (std::vector<float>{0.5F, -65504.0F, 0x1p-24F, 1.0F + 0x1p-10F}));
  EXPECT_EQ(read_all(file, "f64"), (std::vector<float>{0.25F, -8.0F}));
  EXPECT_EQ(read_all(file, "scalar"), (std::vector<float>{42.0F}));
  EXPECT_TRUE(file.tensors().at("scalar").shape.empty());
  EXPECT_EQ(file.tensors().at("empty").shape, (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(read_all(file, "empty").empty());
  EXPECT_EQ(file.tensors().at("ids").dtype, DType::i64);
  const auto message = file_error([&] { read_all(file, "ids"); });
  expect_contains(message, "mixed.safetensors: tensor \"ids\" has dtype I64");
  expect_contains(message, "F32, BF16, F16 and F64");
}

TEST(Safetensors, reads_parts_of_tensors_that_start_at_odd_addresses) {
  const TemporaryFolder folder;
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[1,7]},)"
                             R"("c":{"dtype":"F32","shape":[2],"data_offsets":[7,15]}})";
  for (const char* padding : {"", " "}) {  // one of the two starts the data at an odd address
    const auto path = folder.write(
        "x.safetensors",
        raw_safetensors(padding + header + padding,
                        "\x01" + raw_bytes<std::uint16_t>({0x3F80, 0xC049, 0x7F7F}) + raw_bytes<float>({1.5F, -2.5F})));
    const SafetensorsFile file(path);
    std::vector<float> two(2);
    file.read("b", 1, two);
    EXPECT_EQ(two, (std::vector<float>{-3.140625F, 0x1.FEp127F}));
    EXPECT_EQ(read_all(file, "b")[0], 1.0F);
    EXPECT_EQ(read_all(file, "c"), (std::vector<float>{1.5F, -2.5F}));
  }
}

TEST(Safetensors, refuses_a_file_cut_off_at_any_byte) {
  const TemporaryFolder folder;
  const std::string whole =
      raw_safetensors(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})",
                      std::string(10, '\0'));
  EXPECT_NO_THROW(SafetensorsFile{folder.write("x.safetensors", whole)});
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto path = folder.write("x.safetensors", whole.substr(0, n));
    expect_contains(file_error([&] { SafetensorsFile{path}; }), path.string() + ": ");
  }
  const auto longer = folder.write("x.safetensors", whole + "x");
  expect_contains(file_error([&] { SafetensorsFile{longer}; }),
                  "the tensors end at byte 10 of the data, but the file has 11");
}

TEST(Safetensors, loads_or_refuses_a_file_with_any_header_byte_changed) {
  const TemporaryFolder folder;
  const std::string whole =
      raw_safetensors(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", std::string(8, '\1'));
  for (std::size_t i = 0; i < whole.size() - 8; ++i) {
    for (const char c : {'\xff', '9', '"'}) {
      std::string changed = whole;
      changed[i] = c;
      try {
        const SafetensorsFile file(folder.write("x.safetensors", changed));
        for (const auto& [name, info] : file.tensors()) {
          EXPECT_EQ(read_all(file, name).size(), 2U);
        }
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ExitCode::file) << e.what();
      }
    }
  }
}

TEST(Safetensors, refuses_a_header_length_beyond_limit_or_file) {
  const TemporaryFolder folder;
  for (const std::uint64_t n : {std::uint64_t{100'000'001}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    const auto path = folder.write("x.safetensors", raw_bytes<std::uint64_t>({n}) + "{}");
    expect_contains(file_error([&] { SafetensorsFile{path}; }),
                    "header of " + std::to_string(n) + " bytes; at most 100000000");
  }
  const auto path = folder.write("x.safetensors", raw_bytes<std::uint64_t>({3}) + "{}");
  expect_contains(file_error([&] { SafetensorsFile{path}; }), "header of 3 bytes, but only 2 bytes follow");
}

TEST(Safetensors, refuses_ranges_that_overlap_leave_holes_or_run_backwards) {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  const std::string data(8, 'x');
  expect_contains(refusal_of("{" + a + R"(,"b":{"dtype":"U8","shape":[5],"data_offsets":[3,8]}})", data),
                  "tensor \"b\" starts at byte 3 of the data, before byte 4");
  expect_contains(refusal_of("{" + a + R"(,"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})", data),
                  "tensor \"b\" starts at byte 5 of the data, beyond byte 4");
  expect_contains(refusal_of(R"({"b":{"dtype":"U8","shape":[7],"data_offsets":[1,8]}})", data), "beyond byte 0");
  expect_contains(refusal_of(R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[8,4]}})", data), "begin <= end <= 8");
  expect_contains(refusal_of(R"({"b":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", data), "begin <= end <= 8");
  expect_contains(refusal_of("{" + a + "}", data), "end at byte 4 of the data, but the file has 8");
  expect_contains(refusal_of("{}", data), "end at byte 0 of the data, but the file has 8");
}

TEST(Safetensors, accepts_ranges_in_any_order_of_names) {
  const TemporaryFolder folder;
  const auto path =
      folder.write("x.safetensors", raw_safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                                                    R"("e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},)"
                                                    R"("z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                                    raw_bytes<float>({7.0F, 8.0F})));
  const SafetensorsFile file(path);
  EXPECT_EQ(read_all(file, "a"), (std::vector<float>{8.0F}));
  EXPECT_EQ(read_all(file, "z"), (std::vector<float>{7.0F}));
}

TEST(Safetensors, refuses_shapes_that_overflow_or_do_not_fit_the_range) {
  const auto with_shape = [](const std::string& shape) {
    return R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,8]}})";
  };
  const std::string data(8, '\0');
  // 2^62 * 4 bytes and 2^32 * 2^32 * 4 are 0 modulo 2^64; (2^61 + 2) * 4 is 8
  for (const char* shape : {"[4611686018427387904,4]", "[4294967296,4294967296]", "[2305843009213693954]",
                            "[18446744073709551615]", "[4611686018427387904,4611686018427387904,4,0]"}) {
    expect_contains(refusal_of(with_shape(shape), data),
                    "tensor \"w\" has shape " + std::string(shape) + ", more than 2^63 bytes");
  }
  for (const char* shape : {"[-1]", "[1.5]", "[\"2\"]", "[[2]]", "[1e0]", "[18446744073709551616]"}) {
    expect_contains(refusal_of(with_shape(shape), data), "extents are integers of at least 0");
  }
  std::string ones = "1";
  for (int i = 0; i < 16; ++i) ones += ",1";
  expect_contains(refusal_of(with_shape("[" + ones + "]"), data), "tensor \"w\" has 17 extents; at most 16");
  expect_contains(refusal_of(with_shape("[3]"), data), "tensor \"w\" of dtype F32 and shape [3] takes 12 bytes, but");
  expect_contains(refusal_of(with_shape("[0]"), data), "takes 0 bytes");
  expect_contains(refusal_of(with_shape("{}"), data), "\"w.shape\" is {}; an array");
}

TEST(Safetensors, refuses_malformed_entries) {
  const std::string data(2, '\0');
  expect_contains(refusal_of(R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[0]}})", data),
                  "data_offsets [0]; [begin, end]");
  expect_contains(refusal_of(R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[-2,0]}})", data), "[begin, end]");
  expect_contains(refusal_of(R"({"w":{"dtype":"F16","shape":[1]}})", data), "\"w.data_offsets\" is missing");
  expect_contains(refusal_of(R"({"w":{"shape":[1],"data_offsets":[0,2]}})", data), "\"w.dtype\" is missing");
  expect_contains(refusal_of(R"({"w":7})", data), "\"w\" is 7; an object");
  expect_contains(refusal_of(R"([1])", data), "an object {...} was expected");
  expect_contains(refusal_of(R"({"__metadata__":{"format":1}})"), "\"__metadata__.format\" is 1; a text");
  expect_contains(refusal_of(R"({"__metadata__":[]})"), "an object");
  expect_contains(
      refusal_of(
          R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          data),
      "\"w\" stands twice");
  expect_contains(refusal_of(std::string(1'000'000, '[')), "nested more than 8 deep");
  expect_contains(refusal_of(std::string("{}\0", 3)), "not valid JSON");
  expect_contains(refusal_of("   "), "empty");
}

TEST(Safetensors, refuses_quantised_types_naming_tensor_and_dtype) {
  for (const char* dtype : {"F8_E4M3", "F8_E5M2", "F4", "I4"}) {
    expect_contains(
        refusal_of(R"({"model.q.weight":{"dtype":")" + std::string(dtype) + R"(","shape":[2],"data_offsets":[0,2]}})",
                   "ab"),
        "tensor \"model.q.weight\" has dtype " + std::string(dtype) + "; F32, BF16, F16 and F64");
  }
}

TEST(Safetensors, refuses_what_is_no_regular_file) {
  const TemporaryFolder folder;
  expect_contains(file_error([&] { SafetensorsFile{folder / "none.safetensors"}; }),
                  "none.safetensors: cannot be opened");
  expect_contains(file_error([&] { SafetensorsFile{folder.path()}; }), "not a regular file");
}

TEST(SafetensorsWriter, writes_the_bytes_that_the_format_asks_for) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "x.safetensors",
                           {{"w", DType::f32, {2}}, {"s", DType::bf16, {}}, {"e", DType::f16, {0}}});
  writer.write("w", std::vector<float>{1.0F});
  writer.write("w", std::vector<float>{-2.0F});
  writer.write("s", std::vector<float>{1.0F});
  writer.finish();
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"e":{"data_offsets":[10,10],"dtype":"F16","shape":[0]},)"
      R"("s":{"data_offsets":[8,10],"dtype":"BF16","shape":[]},)"
      R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(file_bytes(folder / "x.safetensors"),
            raw_safetensors(padded, raw_bytes<float>({1.0F, -2.0F}) + raw_bytes<std::uint16_t>({0x3F80})));
}

TEST(SafetensorsWriter, rounds_to_nearest_even_and_reads_back) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1.0F + 0x1p-8F,   1.0F + 0x3p-8F, 1.0F + 0x1p-11F,
                                     -1.0F - 0x3p-11F, 0x1p-25F,       0x1.8p-24F};
  SafetensorsWriter writer(folder / "x.safetensors", {{"b", DType::bf16, {6}}, {"h", DType::f16, {6}}});
  writer.write("b", values);
  writer.write("h", values);
  writer.finish();
  const SafetensorsFile file(folder / "x.safetensors");
  EXPECT_EQ(read_all(file, "b"), (std::vector<float>{1.0F, 1.0F + 0x1p-6F, 1.0F, -1.0F, 0x1p-25F, 0x1.8p-24F}));
  EXPECT_EQ(read_all(file, "h"),
            (std::vector<float>{1.0F + 0x1p-8F, 1.0F + 0x3p-8F, 1.0F, -1.0F - 0x1p-9F, 0.0F, 0x1p-23F}));
}

TEST(SafetensorsWriter, refuses_values_that_the_type_cannot_hold) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "x.safetensors", {{"h", DType::f16, {2}}});
  const auto message = file_error([&] { writer.write("h", std::vector<float>{1.0F, 1e6F}); });
  expect_contains(message, "tensor \"h\" holds 1000000");
  expect_contains(message, "F32 or BF16");
}

TEST(SafetensorsWriter, insists_on_order_and_wholeness) {
  const TemporaryFolder folder;
  const std::vector<float> two(2);
  SafetensorsWriter writer(folder / "x.safetensors", {{"a", DType::f32, {2}}, {"b", DType::f32, {1}}});
  EXPECT_THROW(writer.write("b", two), Error);
  EXPECT_THROW(writer.write("a", std::vector<float>(3)), Error);
  writer.write("a", two);
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_THROW(SafetensorsWriter(folder / "y.safetensors", {{"a", DType::f32, {1}}, {"a", DType::f32, {1}}}), Error);
}

TEST(OutputFile, names_a_file_that_cannot_be_written) {
  OutputFile full("/dev/full");  // every write fails as on a full disk
  expect_contains(file_error([&] { full.write("x"); }), "/dev/full: cannot be written: No space left on device");
  expect_contains(file_error([&] { OutputFile{"/nonexistent/x"}; }), "/nonexistent/x: cannot be created");
}

}  // namespace
