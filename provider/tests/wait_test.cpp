// Who can be waited for, by which call, and what is refused: as in libfabric's cxi provider.
#include <sys/eventfd.h>
#include <unistd.h>

#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::EventKind;

namespace {

// For the life of this object the process belongs to a served fabric.
struct Served {
  FakeRun& run = fake_run();
  Served() {
    run.wake_descriptor = eventfd(0, EFD_CLOEXEC);
    run.header->served = 1;
  }
  ~Served() {
    run.header->served = 0;
    close(run.wake_descriptor);
    run.wake_descriptor = -1;
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
};

struct Queue {
  fid_cq* cq = nullptr;
  int error;
  Queue(const Rig& rig, fi_wait_obj object) {
    fi_cq_attr attributes{};
    attributes.wait_obj = object;
    error = fi_cq_open(rig.domain, &attributes, &cq, nullptr);
  }
  ~Queue() {
    if (cq != nullptr) CHECK(fi_close(&cq->fid) == 0);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
};

int open_counter(const Rig& rig, fi_wait_obj object, fid_cntr*& counter) {
  fi_cntr_attr attributes{};
  attributes.wait_obj = object;
  return fi_cntr_open(rig.domain, &attributes, &counter, nullptr);
}

int try_wait(const Rig& rig, fid* object) { return fi_trywait(rig.fabric, &object, 1); }

}  // namespace

TEST_CASE("nothing of FI_WAIT_NONE can be waited for") {
  Rig rig;
  fi_cq_tagged_entry entry{};
  Queue queue(rig, FI_WAIT_NONE);
  CHECK(fi_cq_sread(queue.cq, &entry, 1, nullptr, 0) == -FI_EINVAL);
  fid_cntr* counter = nullptr;
  REQUIRE(open_counter(rig, FI_WAIT_NONE, counter) == 0);
  CHECK(fi_cntr_wait(counter, 0, 0) == -FI_EINVAL);
  CHECK(fi_close(&counter->fid) == 0);
  fi_eq_attr attributes{};
  fid_eq* events = nullptr;
  REQUIRE(fi_eq_open(rig.fabric, &attributes, &events, nullptr) == 0);
  std::uint32_t event = 0;
  CHECK(fi_eq_sread(events, &event, &entry, sizeof entry, 0, 0) == -FI_ENOSYS);
  CHECK(fi_close(&events->fid) == 0);
}

TEST_CASE("a queue takes FI_WAIT_UNSPEC, a counter FI_WAIT_YIELD too, and neither a mutex or a wait set") {
  Rig rig;
  for (const fi_wait_obj refused : {FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD}) {
    CHECK(Queue(rig, refused).error == -FI_ENOSYS);
  }
  CHECK(Queue(rig, FI_WAIT_UNSPEC).error == 0);
  fid_cntr* counter = nullptr;
  for (const fi_wait_obj refused : {FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_FD, FI_WAIT_POLLFD}) {
    CHECK(open_counter(rig, refused, counter) == -FI_ENOSYS);
  }
  REQUIRE(open_counter(rig, FI_WAIT_YIELD, counter) == 0);
  CHECK(fi_cntr_wait(counter, 0, 0) == 0);
  CHECK(fi_cntr_wait(counter, std::uint64_t{1} << 48, 0) == -FI_EINVAL);
  CHECK(fi_cntr_set(counter, std::uint64_t{1} << 48) == -FI_EINVAL);
  CHECK(fi_cntr_adderr(counter, 128) == -FI_EINVAL);
  CHECK(fi_cntr_adderr(counter, 127) == 0);
  CHECK(fi_close(&counter->fid) == 0);
  CHECK(fi_cq_signal(rig.queue) == -FI_ENOSYS);
}

TEST_CASE("in a run there is no descriptor: FI_WAIT_UNSPEC waits in fi_cq_sread only") {
  Rig rig;
  CHECK(Queue(rig, FI_WAIT_FD).error == -FI_ENOSYS);
  CHECK(Queue(rig, FI_WAIT_POLLFD).error == -FI_ENOSYS);
  int descriptor = -1;
  CHECK(fi_control(&rig.queue->fid, FI_GETWAIT, &descriptor) == -FI_ENODATA);
  CHECK(try_wait(rig, &rig.queue->fid) == -FI_EINVAL);
}

TEST_CASE("on a served fabric FI_WAIT_UNSPEC is a descriptor, as FI_WAIT_FD is") {
  const Served served;
  Rig rig;
  Queue asked(rig, FI_WAIT_FD);
  for (fid_cq* queue : {rig.queue, asked.cq}) {
    fi_wait_obj kind = FI_WAIT_NONE;
    CHECK(fi_control(&queue->fid, FI_GETWAITOBJ, &kind) == 0);
    CHECK(kind == FI_WAIT_FD);
    int descriptor = -1;
    CHECK(fi_control(&queue->fid, FI_GETWAIT, &descriptor) == 0);
    CHECK(descriptor >= 0);
    CHECK(descriptor != served.run.wake_descriptor);  // its own, which it closes
  }
}

TEST_CASE("FI_WAIT_POLLFD gives its one descriptor where there is room for it") {
  const Served served;
  Rig rig;
  Queue queue(rig, FI_WAIT_POLLFD);
  REQUIRE(queue.error == 0);
  pollfd polled{-1, 0, 0};
  fi_wait_pollfd asked{.change_index = 0, .nfds = 0, .fd = &polled};
  CHECK(fi_control(&queue.cq->fid, FI_GETWAIT, &asked) == -FI_ETOOSMALL);
  CHECK(asked.nfds == 1);
  REQUIRE(fi_control(&queue.cq->fid, FI_GETWAIT, &asked) == 0);
  CHECK(asked.nfds == 1);
  CHECK(polled.fd >= 0);
  CHECK(polled.events == POLLIN);
}

TEST_CASE("fi_trywait lets a program sleep only when none of its queues has an entry and nothing is coming") {
  const Served served;
  Rig rig;
  Queue empty(rig, FI_WAIT_FD);
  Queue none(rig, FI_WAIT_NONE);
  CHECK(try_wait(rig, &rig.queue->fid) == 0);
  CHECK(try_wait(rig, &rig.memory_counter->fid) == -FI_ENOSYS);
  CHECK(try_wait(rig, &none.cq->fid) == -FI_EINVAL);
  CHECK(try_wait(rig, &rig.endpoint->fid) == -FI_EINVAL);
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent), 1'000'000);
  CHECK(try_wait(rig, &rig.queue->fid) == -FI_EAGAIN);  // not there yet, but on its way into the ring
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_sread(rig.queue, &entry, 1, nullptr, -1) == 1);
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent));
  fid* both[] = {&empty.cq->fid, &rig.queue->fid};
  CHECK(fi_trywait(rig.fabric, both, 2) == -FI_EAGAIN);
  CHECK(try_wait(rig, &empty.cq->fid) == 0);  // the entry is of the other, and nothing more is coming
  CHECK(fi_cq_read(rig.queue, &entry, 1) == 1);
}
