#include "wire/reduction.hpp"

#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dryfly::wire {

namespace {

constexpr std::uint64_t quiet_bit = std::uint64_t{1} << 51;
constexpr std::uint64_t exponent_mask = 0x7ff;
constexpr unsigned mantissa_bits = 52;
constexpr int bin_bits = 40;
constexpr int bias = 1074 + bin_bits;  // the lowest bit of the smallest number is the lowest of bin 1

double as_double(std::uint64_t word) {
  double value = 0;
  memcpy(&value, &word, sizeof value);
  return value;
}

std::uint64_t as_word(double value) {
  std::uint64_t word = 0;
  memcpy(&word, &value, sizeof word);
  return word;
}

std::int64_t as_int(std::uint64_t word) { return static_cast<std::int64_t>(word); }

bool is_nan(double value) { return value != value; }
bool is_signalling(std::uint64_t word) { return is_nan(as_double(word)) && (word & quiet_bit) == 0; }
bool is_infinite(double value) { return value - value != 0 && !is_nan(value); }

void raise(Contribution& of, ReductionStatus status) {
  const auto value = static_cast<std::uint8_t>(status);
  if (value > of.status) of.status = value;
}

bool is_double_sum(std::uint8_t op) { return op >= static_cast<std::uint8_t>(ReductionOp::double_sum); }

ReductionOp kind_of(std::uint8_t op) { return is_double_sum(op) ? ReductionOp::double_sum : ReductionOp{op}; }

// As the contributing processes round, while it lives.
class Rounding {
 public:
#if defined(__x86_64__)
  explicit Rounding(std::uint8_t op) : before_(_mm_getcsr()) {
    const unsigned way = op - static_cast<unsigned>(ReductionOp::double_sum);
    _mm_setcsr((before_ & ~0xe000U) | (way & 3U) << 13 | (way >> 2) << 15);
  }
  ~Rounding() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  explicit Rounding(std::uint8_t) {}
#endif
};

double add_as(std::uint8_t op, double a, double b) {
  const Rounding rounding(op);
  volatile double sum = a;  // stays between the two changes of the mode
  sum = sum + b;
  return sum;
}

// 1: `other` takes the place of `value`, -1: it does not, 0: they are alike. A number comes before no number.
int choose(std::uint64_t value, std::uint64_t other, bool least) {
  const double a = as_double(value);
  const double b = as_double(other);
  if (is_nan(a) || is_nan(b)) return is_nan(a) == is_nan(b) ? 0 : is_nan(a) ? 1 : -1;
  if (a == b) return 0;
  return (b < a) == least ? 1 : -1;
}

void choose_double(Contribution& into, std::size_t i, std::uint64_t other, bool least) {
  if (is_signalling(into.words[i]) || is_signalling(other)) raise(into, ReductionStatus::invalid);
  if (choose(into.words[i], other, least) > 0) into.words[i] = other;
  if (is_nan(as_double(into.words[i]))) into.words[i] |= quiet_bit;
}

// The value at i and its place behind it; of equal values the lowest place stands.
void choose_place(Contribution& into, const Contribution& other, std::size_t i, int choice) {
  if (choice > 0) into.words[i] = other.words[i];
  const bool lower = other.words[i + 1] < into.words[i + 1];
  if (choice > 0 || (choice == 0 && lower)) into.words[i + 1] = other.words[i + 1];
}

int choose_int(std::uint64_t value, std::uint64_t other, bool least) {
  if (value == other) return 0;
  return (as_int(other) < as_int(value)) == least ? 1 : -1;
}

void add_int(Contribution& into, std::size_t i, std::uint64_t other) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(as_int(into.words[i]), as_int(other), &sum)) {
    raise(into, ReductionStatus::integer_overflow);
  }
  into.words[i] = static_cast<std::uint64_t>(sum);
}

// Each bin is an integer of its own, so that sums do not depend on an order; 2^20 contributions of 40 bits fit.
void put_in_bins(Contribution& made) {
  const std::uint64_t word = made.words[0];
  const double value = as_double(word);
  memset(made.words, 0, sizeof made.words);
  if (is_signalling(word)) raise(made, ReductionStatus::invalid);
  if (is_nan(value) || is_infinite(value)) {
    raise(made, ReductionStatus::overflow);
    return;
  }
  std::uint64_t mantissa = word & ((std::uint64_t{1} << mantissa_bits) - 1);
  const auto exponent = static_cast<int>(word >> mantissa_bits & exponent_mask);
  if (exponent != 0) mantissa |= std::uint64_t{1} << mantissa_bits;
  const int lowest_bit = (exponent != 0 ? exponent - 1 : 0) + bin_bits;  // of the mantissa, above the lowest of bin 0
  __extension__ using Wide = unsigned __int128;
  Wide bits = static_cast<Wide>(mantissa) << (lowest_bit % bin_bits);
  made.top_bin = static_cast<std::int16_t>(lowest_bit / bin_bits + 2);
  for (std::size_t i = 3; i-- > 0; bits >>= bin_bits) {
    const auto piece = static_cast<std::int64_t>(bits & ((Wide{1} << bin_bits) - 1));
    made.words[i] = static_cast<std::uint64_t>((word >> 63) != 0 ? -piece : piece);
  }
}

void add_bins(Contribution& into, const Contribution& other) {
  const Contribution& high = into.top_bin >= other.top_bin ? into : other;
  const Contribution& low = into.top_bin >= other.top_bin ? other : into;
  const auto shift = static_cast<std::size_t>(high.top_bin - low.top_bin);
  std::uint64_t sum[reduction_words];
  memcpy(sum, high.words, sizeof sum);
  for (std::size_t i = shift; i < reduction_words; ++i) sum[i] += low.words[i - shift];
  into.top_bin = high.top_bin;
  memcpy(into.words, sum, sizeof sum);
}

// From the smallest up, each exact until it meets a larger one.
double sum_of_bins(const Contribution& all) {
  double sum = 0;
  for (std::size_t i = reduction_words; i-- > 0;) {
    double part = static_cast<double>(as_int(all.words[i]));
    int exponent = (all.top_bin - static_cast<int>(i)) * bin_bits - bias;
    for (; exponent >= 512; exponent -= 512) part *= 0x1p512;
    for (; exponent <= -512; exponent += 512) part *= 0x1p-512;
    part *= as_double(static_cast<std::uint64_t>(exponent + 1023) << mantissa_bits);
    sum += part;
  }
  return sum;
}

void check_doubles(Contribution& made, std::size_t step) {
  for (std::size_t i = 0; i < reduction_words; i += step) {
    const double value = as_double(made.words[i]);
    if (is_signalling(made.words[i])) raise(made, ReductionStatus::invalid);
    const bool counts = step == 1 ? is_nan(value) || is_infinite(value) : is_infinite(value);
    if (counts) raise(made, ReductionStatus::overflow);
  }
}

void combine_word(Contribution& into, const Contribution& other, std::size_t i) {
  std::uint64_t& word = into.words[i];
  const std::uint64_t more = other.words[i];
  switch (kind_of(into.op)) {
    case ReductionOp::bit_and:
      word &= more;
      return;
    case ReductionOp::bit_or:
      word |= more;
      return;
    case ReductionOp::bit_xor:
      word ^= more;
      return;
    case ReductionOp::int_min:
    case ReductionOp::int_max:
      if (choose_int(word, more, ReductionOp{into.op} == ReductionOp::int_min) > 0) word = more;
      return;
    case ReductionOp::int_sum:
      return add_int(into, i, more);
    case ReductionOp::double_min:
    case ReductionOp::double_max:
      return choose_double(into, i, more, ReductionOp{into.op} == ReductionOp::double_min);
    case ReductionOp::double_sum:
      word = as_word(add_as(into.op, as_double(word), as_double(more)));
      if (is_infinite(as_double(word))) raise(into, ReductionStatus::overflow);
      return;
    default:
      return;
  }
}

}  // namespace

void start_contribution(Contribution& made, std::uint8_t op, const void* data, std::size_t bytes) {
  memset(&made, 0, sizeof made);
  if (data != nullptr) memcpy(made.words, data, bytes < sizeof made.words ? bytes : sizeof made.words);
  made.count = 1;
  made.op = op;
  switch (kind_of(op)) {
    case ReductionOp::double_min:
    case ReductionOp::double_max:
    case ReductionOp::double_sum:
      return check_doubles(made, 1);
    case ReductionOp::double_extremes:
      return check_doubles(made, 2);
    case ReductionOp::reproducible_sum:
      return put_in_bins(made);
    default:
      return;
  }
}

void combine(Contribution& into, const Contribution& other) {
  if (other.count == 0) return;
  if (into.count == 0) {
    into = other;
    return;
  }
  into.count += other.count;
  raise(into, ReductionStatus{other.status});
  if (into.op != other.op) return raise(into, ReductionStatus::op_mismatch);
  switch (kind_of(into.op)) {
    case ReductionOp::int_extremes:
      choose_place(into, other, 0, choose_int(into.words[0], other.words[0], true));
      return choose_place(into, other, 2, choose_int(into.words[2], other.words[2], false));
    case ReductionOp::double_extremes:
      choose_place(into, other, 0, choose(into.words[0], other.words[0], true));
      return choose_place(into, other, 2, choose(into.words[2], other.words[2], false));
    case ReductionOp::reproducible_sum:
      return add_bins(into, other);
    default:
      for (std::size_t i = 0; i < reduction_words; ++i) combine_word(into, other, i);
  }
}

void finish(const Contribution& all, void* result, std::size_t bytes) {
  if (result == nullptr || bytes == 0) return;
  std::uint64_t sum = 0;
  const bool in_bins = kind_of(all.op) == ReductionOp::reproducible_sum;
  if (in_bins) sum = as_word(sum_of_bins(all));
  memcpy(result, in_bins ? &sum : all.words, bytes);
}

}  // namespace dryfly::wire
