#include "core/nic/get_queues.hpp"

namespace dryfly::nic {

bool GetQueues::is_asked_by_cpu(const Transfer& answer) const {
  const Parcel parcel = Parcel::of_handle(answer.handle);
  return parcel.step == Step::rma_response || owner_.is_asked_by_software(parcel.item);
}

std::uint32_t GetQueues::queues_for(const Transfer& answer) const {
  if (answer.size <= spec_.packet) return 0;
  const Step step = Parcel::of_handle(answer.handle).step;
  if (step != Step::get_data && step != Step::rma_response) return 0;
  return spec_.queues(is_asked_by_cpu(answer));
}

std::uint64_t GetQueues::draw_queue(const Transfer& answer) {
  const std::uint64_t target = answer.target.value;
  if (target >= asked_.size()) asked_.resize(target + 1);
  const std::uint64_t number = GetQueueSpec::draw(target, asked_[target]++, queues_for(answer));
  const auto kind = static_cast<std::uint64_t>(answer.traffic_class) * 2 + (is_asked_by_cpu(answer) ? 1 : 0);
  return (target << 8 | kind) << 16 | number;
}

void GetQueues::submit(const Transfer& transfer) {
  if (queues_for(transfer) == 0) return below_.submit(transfer);
  const std::uint32_t index = answers_.acquire();
  const std::uint64_t queue = draw_queue(transfer);
  const std::uint64_t bytes = transfer.size.count;
  answers_[index] = {.whole = transfer, .queue = queue, .left = bytes, .to_come = bytes, .unsettled = bytes};
  queues_[queue].answers.push(index);
  advance(queue);
}

std::uint64_t GetQueues::next_part(const Queue& queue, const Answer& answer) const {
  if (answer.left == 0 || answer.under_way >= GetQueueSpec::at_once) return 0;
  const std::uint64_t bytes = spec_.next_part(answer.left);
  const bool has_begun = answer.left != answer.whole.size.count;
  return has_begun || spec_.may_begin(bytes, queue.under_way) ? bytes : 0;
}

void GetQueues::advance(std::uint64_t name) {
  Queue& queue = *queues_.find(name);
  while (const std::uint32_t* first = queue.answers.ahead(0)) {
    Answer& answer = answers_[*first];
    const std::uint64_t bytes = next_part(queue, answer);
    if (bytes == 0 && answer.left != 0) return;
    if (bytes != 0) {
      const std::uint32_t part = parts_.acquire();
      parts_[part] = {.answer = *first, .bytes = bytes};
      answer.left -= bytes;
      ++answer.under_way;
      queue.under_way += bytes;
      Transfer transfer = answer.whole;
      transfer.size = Bytes{bytes};
      transfer.handle = Parcel{Step::get_part, part}.handle();
      if (answer.left + bytes == answer.whole.size.count) owner_.begins(answer.whole.handle);
      below_.submit(transfer);
    }
    if (answer.left == 0) queue.answers.pop();
  }
  if (queue.under_way == 0) queues_.erase(queue);
}

void GetQueues::leave(const Part& part) {
  Answer& answer = answers_[part.answer];
  --answer.under_way;
  queues_.find(answer.queue)->under_way -= part.bytes;
  advance(answer.queue);
}

void GetQueues::delivered(std::uint32_t handle, std::uint32_t switch_hops) {
  const Parcel parcel = Parcel::of_handle(handle);
  if (parcel.step != Step::get_part) return sink_->delivered(handle, switch_hops);
  const Part part = parts_[parcel.item];
  Answer& answer = answers_[part.answer];
  answer.to_come -= part.bytes;
  leave(part);
  if (answer.to_come == 0) sink_->delivered(answer.whole.handle, switch_hops);
}

void GetQueues::acknowledged(std::uint32_t handle) {
  const Parcel parcel = Parcel::of_handle(handle);
  if (parcel.step != Step::get_part) return sink_->acknowledged(handle);
  settle(parcel.item);
}

// Nothing more of its answer sets out.
void GetQueues::failed(std::uint32_t handle, bool delivered) {
  const Parcel parcel = Parcel::of_handle(handle);
  if (parcel.step != Step::get_part) return sink_->failed(handle, delivered);
  const Part part = parts_[parcel.item];
  Answer& answer = answers_[part.answer];
  answer.is_failed = true;
  answer.unsettled -= answer.left;
  answer.left = 0;
  if (!delivered) {
    leave(part);
  } else if (queues_.find(answer.queue) != nullptr) {
    advance(answer.queue);
  }
  settle(parcel.item);
}

void GetQueues::settle(std::uint32_t index) {
  const Part part = parts_[index];
  parts_.release(index);
  Answer& answer = answers_[part.answer];
  answer.unsettled -= part.bytes;
  if (answer.unsettled != 0) return;
  const Answer over = answer;
  answers_.release(part.answer);
  if (over.is_failed) return sink_->failed(over.whole.handle, over.to_come == 0);
  sink_->acknowledged(over.whole.handle);
}

}  // namespace dryfly::nic
