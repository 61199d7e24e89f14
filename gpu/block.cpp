#include "gpu/block.hpp"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <utility>

__thread dryfly::gpu::Shape dryfly_thread_index;
__thread dryfly::gpu::Shape dryfly_block_index;
__thread dryfly::gpu::Shape dryfly_block_shape;
__thread dryfly::gpu::Shape dryfly_grid_shape;

namespace dryfly::gpu {

namespace {

constexpr std::size_t stack_bytes = 256 << 10;
constexpr std::size_t guard_bytes = 4096;

// A stack on which threads of the block run: one after the other, as long as none of them waits.
struct Fibre {
  ucontext_t context;
  Shape index;  // of the thread that waits on it
};

struct Votes {
  int count;
  int voters;
};

class Block {
 public:
  // Of the calling thread; never given back, for the next kernel needs it.
  static Block& own();

  void run(unsigned threads, const Body& body);
  void wait();
  Votes vote(int predicate);
  void* shared() { return shared_; }

 private:
  static void work();
  void add_fibre();
  void resume(int fibre);
  void run_threads();
  static Shape index_of(unsigned thread);

  ucontext_t scheduler_;
  Fibre* fibres_[threads_max];
  int idle_[threads_max];
  int waiting_[threads_max];
  int awake_[threads_max];
  int fibre_count_;
  int idle_count_;
  int waiting_count_;
  int current_;
  unsigned threads_;
  unsigned begun_;
  Votes votes_;   // of those that wait now
  Votes result_;  // of those that waited before
  Body body_;
  alignas(256) char shared_[shared_most];
};

thread_local Block* own_block = nullptr;

void* mapped(std::size_t bytes) {
  void* const room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) abort();
  return room;
}

Block& Block::own() {
  if (own_block == nullptr) own_block = static_cast<Block*>(mapped(sizeof(Block)));
  return *own_block;
}

Shape Block::index_of(unsigned thread) {
  const unsigned row = thread / dryfly_block_shape.x;
  return {thread % dryfly_block_shape.x, row % dryfly_block_shape.y, row / dryfly_block_shape.y};
}

// What runs on a fibre.
void Block::work() {
  Block& block = own();
  const int fibre = block.current_;
  for (;;) {
    block.run_threads();
    block.idle_[block.idle_count_++] = fibre;
    swapcontext(&block.fibres_[fibre]->context, &block.scheduler_);
  }
}

void Block::run_threads() {
  while (begun_ < threads_) {
    dryfly_thread_index = index_of(begun_++);
    body_.invoke(body_.function, body_.arguments);
  }
}

// The page below its stack ends a thread that needs more with a fault.
void Block::add_fibre() {
  char* const room = static_cast<char*>(mapped(guard_bytes + stack_bytes));
  if (mprotect(room, guard_bytes, PROT_NONE) != 0) abort();
  auto* const fibre = static_cast<Fibre*>(malloc(sizeof(Fibre)));
  if (fibre == nullptr || getcontext(&fibre->context) != 0) abort();
  fibre->context.uc_stack.ss_sp = room + guard_bytes;
  fibre->context.uc_stack.ss_size = stack_bytes;
  fibre->context.uc_link = nullptr;
  makecontext(&fibre->context, work, 0);
  idle_[idle_count_++] = fibre_count_;
  fibres_[fibre_count_++] = fibre;
}

void Block::resume(int fibre) {
  current_ = fibre;
  swapcontext(&scheduler_, &fibres_[fibre]->context);
}

void Block::run(unsigned threads, const Body& body) {
  threads_ = threads;
  begun_ = 0;
  body_ = body;
  votes_ = {};
  while (begun_ < threads_) {
    if (idle_count_ == 0) add_fibre();
    resume(idle_[--idle_count_]);
  }
  // All that have not ended wait.
  while (waiting_count_ != 0) {
    const int count = std::exchange(waiting_count_, 0);
    for (int i = 0; i < count; ++i) awake_[i] = waiting_[i];
    result_ = std::exchange(votes_, Votes{});
    for (int i = 0; i < count; ++i) {
      dryfly_thread_index = fibres_[awake_[i]]->index;
      resume(awake_[i]);
    }
  }
}

void Block::wait() {
  Fibre& fibre = *fibres_[current_];
  fibre.index = dryfly_thread_index;
  waiting_[waiting_count_++] = current_;
  swapcontext(&fibre.context, &scheduler_);
}

Votes Block::vote(int predicate) {
  votes_.count += predicate != 0 ? 1 : 0;
  ++votes_.voters;
  wait();
  return result_;
}

}  // namespace

void run_blocks(Shape grid, Shape block, const Body& body) {
  Block& own = Block::own();
  dryfly_grid_shape = grid;
  dryfly_block_shape = block;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        dryfly_block_index = {x, y, z};
        own.run(block.x * block.y * block.z, body);
      }
    }
  }
}

}  // namespace dryfly::gpu

extern "C" void dryfly_kernel_synchronize() { dryfly::gpu::Block::own().wait(); }
extern "C" int dryfly_kernel_vote(int predicate, int* voters) {
  const dryfly::gpu::Votes votes = dryfly::gpu::Block::own().vote(predicate);
  *voters = votes.voters;
  return votes.count;
}
extern "C" void* dryfly_kernel_shared() { return dryfly::gpu::Block::own().shared(); }
