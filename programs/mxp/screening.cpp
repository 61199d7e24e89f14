#include "screening.hpp"

#include "../hpl/agree.hpp"
#include "../hpl/generator.hpp"
#include "../hpl/work.hpp"

namespace dryfly::mxp {
namespace {

constexpr std::int64_t kOrder = hpl::kScreenOrder;

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

Probe::Probe(Kernel& kernel, std::int64_t block)
    : kernel_(kernel),
      block_(block),
      plain_(room(kOrder * block * element_bytes(kernel.precision()))),
      left_(room(kernel.left_bytes(kOrder, block))),
      right_(room(kernel.right_bytes(block, kOrder))),
      c_(room(kOrder * kOrder * element_bytes(kernel.precision()))) {
  if (!allocated()) return;
  fill(kernel.precision(), kOrder * block, plain_.data());
  kernel.pack_left(kOrder, block, plain_.data(), kOrder, left_.data());
  kernel.pack_right(block, kOrder, plain_.data(), block, right_.data());
}

bool Probe::allocated() const {
  return plain_.data() != nullptr && left_.data() != nullptr && right_.data() != nullptr && c_.data() != nullptr;
}

void Probe::multiply() const {
  const int announced = kernel_.precision() == Precision::fp32 ? DRYFLY_FP32 : DRYFLY_HALF;
  if (allocated() && hpl::product(kOrder, kOrder, block_, announced))
    kernel_.subtract(kOrder, kOrder, block_, left_.data(), right_.data(), c_.data(), kOrder, Zeros::none);
}

hpl::Screening screen(Kernel& kernel, std::int64_t block, MPI_Comm where) {
  const Probe probe(kernel, block);
  hpl::agree(probe.allocated() ? "" : "--screen or --spare: the system gives no memory for the product",
             "a rank has no memory for the product of --screen or --spare", where);
  return hpl::screen([&] { probe.multiply(); }, block, where);
}

}  // namespace dryfly::mxp
