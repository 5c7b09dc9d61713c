// SPDX-License-Identifier: MIT
#include "model/units.hpp"

#include "model/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <clocale>
#include <limits>
#include <locale>
#include <random>
#include <string>
#include <tuple>

using namespace mgpu;

namespace {

constexpr Bytes most = std::numeric_limits<Bytes>::max();
constexpr auto highest = std::numeric_limits<std::int64_t>::max();

template <class Parse>
Error error_of(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::runtime, "nothing was thrown");
}

bool contains(const Error& error, std::string_view text) {
  return std::string_view(error.what()).find(text) != std::string_view::npos;
}

struct CommaForPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class ForeignLocale {
 public:
  ForeignLocale() : before_(std::locale::global(std::locale(std::locale(), new CommaForPoint))) {
    std::setlocale(LC_ALL, "de_DE.UTF-8");
  }
  ~ForeignLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale before_;
};

}  // namespace

TEST_CASE("a size is a number and a decimal or binary unit in any case", "[units]") {
  const auto [text, bytes] = GENERATE(table<std::string, Bytes>({
      {"1", 1},
      {"1000003", 1'000'003},
      {"7B", 7},
      {"7 b", 7},
      {"3kB", 3'000},
      {"3KB", 3'000},
      {"4GB", 4'000'000'000},
      {"4gb", 4'000'000'000},
      {"4GiB", Bytes{4} << 30},
      {"4gIb", Bytes{4} << 30},
      {"4.0 GB", 4'000'000'000},
      {"64 MiB", Bytes{64} << 20},
      {"64MB", 64'000'000},
      {"2KiB", 2048},
      {"2TB", 2'000'000'000'000},
      {"500TiB", Bytes{500} << 40},
      {"1.5GiB", 1'610'612'736},
      {".5KiB", 512},
      {"0.001kB", 1},
      {"0.3GiB", 322122547},  // rounded down
      {"1.1KiB", 1126},
      {"1.000003MB", 1'000'003},
      {"007", 7},
      {"4294967297", 4'294'967'297},
      {"18446744073709551615", most},
      {"18446744073709551615.000B", most},
      {"16777215.99999904632568359375TiB", (Bytes{16'777'216} << 40) - 1048576},
      {"0.0000000000009094947017729282379150390625TiB", 1},
  }));
  CAPTURE(text);
  CHECK(parse_size(text, "--size") == Size{bytes, false});
  CHECK(parse_bytes(text, "--align") == bytes);
  CHECK(parse_size(text + "/gpu", "--size") == Size{bytes, true});
  CHECK(parse_size(text + "/GPU", "--size") == Size{bytes, true});
}

TEST_CASE("what is no size is refused with the option, the text and what to write", "[units]") {
  const auto [text, reason] = GENERATE(table<std::string, std::string>({
      {"", "4GB"},
      {" ", "4GB"},
      {"GB", "4GB"},
      {".", "4GB"},
      {"-1", "above zero"},
      {"-4GB", "above zero"},
      {"+4GB", "4GB"},
      {"nan", "4GB"},
      {"inf", "4GB"},
      {"/gpu", "4GB"},
      {" 4GB", "4GB"},
      {"0", "must be > 0"},
      {"0.0GB", "must be > 0"},
      {"0/gpu", "must be > 0"},
      {"4XB", "unknown unit 'XB'"},
      {"1e9", "unknown unit 'e9'"},
      {"0x10", "unknown unit 'x10'"},
      {"4GB ", "unknown unit 'GB '"},
      {"4,5GB", "unknown unit ',5GB'"},
      {"1.2.3", "unknown unit '.3'"},
      {"4GB/s", "unknown unit 'GB/s'"},
      {"4GB/gpu/gpu", "unknown unit 'GB/gpu'"},
      {"4G", "4GB or 4GiB?"},
      {"1.5t", "1.5TB or 1.5TiB?"},
      {"3 k/gpu", "3kB or 3KiB?"},
      {"16M", "16MB or 16MiB?"},
      {"18446744073709551616", "overflow"},
      {"99999999999999999999999999", "overflow"},
      {"16777216TiB", "overflow"},
      {"18446744.073709551616TB", "overflow"},
      {"0.1B", "whole number of bytes"},
      {"1.5", "whole number of bytes"},
      {"0.0001kB", "must be > 0"},
      {"18446744073709551615.5", "whole number of bytes"},
  }));
  CAPTURE(text);
  const auto error = error_of([&] { parse_size(text, "--size"); });
  CAPTURE(error.what());
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "--size '" + text + "'"));
  CHECK(contains(error, reason));
}

TEST_CASE("a size for all GPUs is refused where only bytes make sense", "[units]") {
  const auto error = error_of([] { parse_bytes("2MiB/gpu", "--align"); });
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "--align '2MiB/gpu'"));
  CHECK(contains(error, "write a size such as 2MiB"));
}

TEST_CASE("a number is finite and above zero", "[units]") {
  CHECK(parse_number("5", "--seconds") == 5);
  CHECK(parse_number("0.25", "--seconds") == 0.25);
  CHECK(parse_number("1e-3", "--seconds") == 0.001);

  const std::string text =
      GENERATE("", "nan", "NaN", "inf", "infinity", "-1", "0", "-0", "1s", "1 ", " 1", "+1", "0x1",
               "1e999", "1e-999", "1,5", "--", "five");
  CAPTURE(text);
  const auto error = error_of([&] { parse_number(text, "--seconds"); });
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "--seconds '" + text + "'"));
  CHECK(contains(error, "above 0"));
}

TEST_CASE("zero is a number where it has a meaning, below zero never", "[units]") {
  CHECK(parse_number("0", "--timeout", true) == 0);
  CHECK(parse_number("0.0", "--timeout", true) == 0);
  CHECK(error_of([] { parse_number("-1", "--timeout", true); }).kind == ErrorKind::usage);
  CHECK(error_of([] { parse_number("-0", "--timeout", true); }).kind == ErrorKind::usage);
}

TEST_CASE("a count is a whole number between its bounds, both included", "[units]") {
  CHECK(parse_count("1", "--split", 1, 64) == 1);
  CHECK(parse_count("64", "--split", 1, 64) == 64);
  CHECK(parse_count("9223372036854775807", "--samples", 1, highest) == highest);

  const std::string text = GENERATE("", "0", "65", "-1", "1.5", "1e1", "0x1", "+1", " 1", "1 ",
                                    "nan", "inf", "99999999999999999999", "4GB");
  CAPTURE(text);
  const auto error = error_of([&] { parse_count(text, "--split", 1, 64); });
  CHECK(error.kind == ErrorKind::usage);
  CHECK(contains(error, "--split '" + text + "' must be a whole number from 1 to 64"));
}

TEST_CASE("a count without an upper bound does not print one", "[units]") {
  const auto error = error_of([] { parse_count("0", "--samples", 1, highest); });
  CHECK(contains(error, "must be a whole number, at least 1"));
  CHECK_FALSE(contains(error, std::to_string(highest)));
}

TEST_CASE("products and sums that do not fit in 64 bits are absent", "[units]") {
  CHECK(checked_multiply(Bytes{1} << 32, Bytes{1} << 31) == Bytes{1} << 63);
  CHECK_FALSE(checked_multiply(Bytes{1} << 32, Bytes{1} << 32));
  CHECK(checked_multiply(most, 1) == most);
  CHECK(checked_multiply(most / 3, 3) == most);
  CHECK_FALSE(checked_multiply(most / 3 + 1, 3));
  CHECK(checked_multiply(0, most) == 0);
  CHECK(checked_multiply(most, 0) == 0);
  CHECK(checked_add(most - 1, 1) == most);
  CHECK_FALSE(checked_add(most, 1));
  CHECK_FALSE(checked_add(1, most));
}

TEST_CASE("times have three decimals and are not promoted after rounding", "[units]") {
  CHECK(format_time(0) == "0.000 ns");
  CHECK(format_time(1.01) == "1.010 ns");
  CHECK(format_time(999.9999) == "1000.000 ns");
  CHECK(format_time(1000) == "1.000 \xCE\xBCs");
  CHECK(format_time(196'046) == "196.046 \xCE\xBCs");
  CHECK(format_time(1'000'000) == "1.000 ms");
  CHECK(format_time(1'000'000'000) == "1.000 s");
  CHECK(format_time(1'763'000) == "1.763 ms");
  CHECK(format_time(999'999'999) == "1000.000 ms");
  CHECK(format_time(5e9) == "5.000 s");
  CHECK(format_time(12'345e9) == "12345.000 s");
}

TEST_CASE("the histogram's labels have three digits and no trailing zeros", "[units]") {
  CHECK(format_time_short(0) == "0 ns");
  CHECK(format_time_short(1) == "1 ns");
  CHECK(format_time_short(1.01) == "1.01 ns");
  CHECK(format_time_short(100'000) == "100 \xCE\xBCs");
  CHECK(format_time_short(2'888'000) == "2.89 ms");
  CHECK(format_time_short(3'000'000) == "3 ms");
  CHECK(format_time_short(2.5e9) == "2.5 s");
  CHECK(format_time_short(12'345e9) == "12300 s");
}

TEST_CASE("the histogram's labels are rounded before their unit is chosen", "[units]") {
  CHECK(format_time_short(999.6) == "1 \xCE\xBCs");
  CHECK(format_time_short(999'999'999) == "1 s");
}

TEST_CASE("the histogram's labels round ties as Julia does", "[units]") {
  CHECK(format_time_short(1.115) ==
        "1.12 ns");  // 1.115 * 100 is 111.5 in double, though 1.115 lies below
  CHECK(format_time_short(1005) == "1 \xCE\xBCs");
  CHECK(format_time_short(1015) == "1.02 \xCE\xBCs");
}

TEST_CASE("rates have three significant digits in decimal units", "[units]") {
  CHECK(format_rate(0) == "0.00 B/s");
  CHECK(format_rate(4.538e12) == "4.54 TB/s");
  CHECK(format_rate(1e12) == "1.00 TB/s");
  CHECK(format_rate(999.4e9) == "999 GB/s");
  CHECK(format_rate(999.6e9) == "1.00 TB/s");
  CHECK(format_rate(99.94e9) == "99.9 GB/s");
  CHECK(format_rate(99.96e9) == "100 GB/s");
  CHECK(format_rate(9.996e9) == "10.0 GB/s");
  CHECK(format_rate(13.37e3) == "13.4 kB/s");
  CHECK(format_rate(5e21) == "5000 EB/s");
}

TEST_CASE("sizes are printed in the shortest form that is exact", "[units]") {
  const auto [bytes, text] = GENERATE(table<Bytes, std::string>({
      {0, "0 B"},
      {1, "1 B"},
      {999, "999 B"},
      {1000, "1 kB"},
      {1024, "1 KiB"},
      {1500, "1.5 kB"},
      {1'000'003, "1000003 B"},
      {4'000'000'000, "4 GB"},
      {Bytes{1} << 30, "1 GiB"},
      {Bytes{256} << 20, "256 MiB"},
      {1'610'612'736, "1.5 GiB"},
      {1'500'000'000, "1.5 GB"},
      {Bytes{4} << 10, "4 KiB"},
      {Bytes{500} << 40, "500 TiB"},
      {4'294'967'297, "4294967297 B"},
      {most, "18446744073709551615 B"},
  }));
  CHECK(format_bytes(bytes) == text);
}

TEST_CASE("a printed size is read back as the same number of bytes", "[units]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Bytes bytes = (random() >> random() % 64) | 1;
    for (const Bytes size : {bytes, bytes << random() % 64, bytes * 1000, bytes * 1'000'000'000}) {
      if (size == 0) continue;
      CAPTURE(size, format_bytes(size));
      REQUIRE(parse_bytes(format_bytes(size), "--size") == size);
    }
  }
}

TEST_CASE("memory is printed in binary units with three significant digits", "[units]") {
  CHECK(format_memory(0) == "0 B");
  CHECK(format_memory(1023) == "1023 B");
  CHECK(format_memory(1024) == "1.00 KiB");
  CHECK(format_memory(Bytes{139} << 30) == "139 GiB");
  CHECK(format_memory(150'109'880'320) == "140 GiB");
  CHECK(format_memory(Bytes{3} << 29) == "1.50 GiB");
  CHECK(format_memory(Bytes{1000} << 30) == "0.98 TiB");
  CHECK(format_memory(most) == "16.0 EiB");
}

TEST_CASE("thousands are separated by commas", "[units]") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(123'456) == "123,456");
  CHECK(format_count(4'000'000'000) == "4,000,000,000");
  CHECK(format_count(most) == "18,446,744,073,709,551,615");
}

TEST_CASE("numbers are read and printed alike in every locale", "[units]") {
  const ForeignLocale locale;
  CHECK(parse_bytes("1.5GiB", "--size") == 1'610'612'736);
  CHECK(parse_number("0.25", "--seconds") == 0.25);
  CHECK(format_bytes(1'610'612'736) == "1.5 GiB");
  CHECK(format_time(1763.5) == "1.764 \xCE\xBCs");
  CHECK(format_rate(4.5e12) == "4.50 TB/s");
  CHECK(format_count(1'000'000) == "1,000,000");
}
