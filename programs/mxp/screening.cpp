#include "screening.hpp"

#include "../hpl/generator.hpp"
#include "../hpl/matrix.hpp"
#include "../hpl/work.hpp"

namespace dryfly::mxp {
namespace {

// Room for so many elements, at whole numbers of 64 bytes.
hpl::Doubles room(std::int64_t bytes) { return hpl::Doubles((bytes + 63) / 64 * 8); }

// Numbers of HPL's sequence, for zeros would be multiplied at a higher clock.
void fill(Precision precision, std::int64_t count, void* values) {
  const hpl::Doubles numbers(count);
  if (numbers.data() == nullptr) return;
  hpl::Generator(hpl::Generator::kHplSeed).fill(0, count, numbers.data());
  with_element(precision, [&]<class Element>(Element*) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<Element*>(values)[i] = from_float<Element>(static_cast<float>(numbers.data()[i]));
  });
}

}  // namespace

hpl::Screening screen(Kernel& kernel, std::int64_t block, MPI_Comm where) {
  constexpr std::int64_t order = hpl::kScreenOrder;
  const Precision precision = kernel.precision();
  const hpl::Doubles plain = room(order * block * element_bytes(precision));
  const hpl::Doubles left = room(kernel.left_bytes(order, block)), right = room(kernel.right_bytes(block, order));
  const hpl::Doubles c = room(order * order * element_bytes(precision));
  for (const hpl::Doubles* each : {&plain, &left, &right, &c})
    if (each->data() == nullptr) return {};
  fill(precision, order * block, plain.data());
  kernel.pack_left(order, block, plain.data(), order, left.data());
  kernel.pack_right(block, order, plain.data(), block, right.data());
  const int announced = precision == Precision::fp32 ? DRYFLY_FP32 : DRYFLY_HALF;
  return hpl::screen(
      [&] {
        if (hpl::product(order, order, block, announced))
          kernel.subtract(order, order, block, left.data(), right.data(), c.data(), order, Zeros::none);
      },
      block, where);
}

}  // namespace dryfly::mxp
