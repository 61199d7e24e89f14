// What the provider copies of a device's memory, by whom, and what it refuses, over a runtime that writes down what it
// is asked for. Outside of these tests no pointer is a device's.
#include "provider/device_memory.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "provider/ep.hpp"
#include "provider/memory.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::EventKind;

namespace {

constexpr std::uint64_t runtime_ps = 16'000;
constexpr std::uint64_t processor_ps = 900;

struct FakeRuntime {
  char memory[32'768] = {};
  bool host_access = false;
  std::uint64_t lookup_ps = 0;
  std::vector<std::string> copies;

  bool holds(const void* buffer) const { return buffer >= memory && buffer < memory + sizeof memory; }
  void copied(const void* buffer, std::string what, std::uint64_t ps) {
    if (!holds(buffer)) return;
    copies.push_back(std::move(what));
    rank::Channel::get()->charge(ps);
  }
};

FakeRuntime& runtime() {
  static FakeRuntime made;
  return made;
}

// With buffers on devices of that runtime, and FI_HMEM, for as long as it lives; variables too.
class Gpus {
 public:
  Gpus(const char* name, bool host_access, std::initializer_list<std::pair<std::string, std::string>> settings = {}) {
    set("DRYFLY_GPU", std::string("runtime=") + name + " devices=4");
    for (const auto& [variable, value] : settings) set(variable, value);
    runtime().host_access = host_access;
    runtime().copies.clear();
  }
  ~Gpus() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    runtime().host_access = false;
    runtime().lookup_ps = 0;
  }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

 private:
  void set(const std::string& name, const std::string& value) {
    names_.push_back(name);
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> names_;
};

struct DeviceRig : Rig {
  DeviceRig() : Rig(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION, 0, FI_HMEM) {}
};

using Copies = std::vector<std::string>;

// Who has copied the bytes of an 8 B send, and what the call took.
std::string copied_for_send(std::size_t bytes = 8) {
  DeviceRig rig;
  runtime().copies.clear();
  const std::uint64_t start = rig.run.now_ps();
  REQUIRE(fi_tsend(rig.endpoint, runtime().memory, bytes, nullptr, 1, 0, nullptr) == 0);
  if (runtime().copies.empty()) return "nobody";
  REQUIRE(runtime().copies.size() == 1);
  const bool by_runtime = runtime().copies[0].starts_with("runtime");
  CHECK(rig.run.now_ps() == start + (by_runtime ? runtime_ps : processor_ps) + costs.send_ps);
  return runtime().copies[0];
}

constexpr char by_runtime[] = "runtime out 8 pageable";
constexpr char by_processor[] = "processor out 8";

// An end-point with a posted receive of so many bytes on a device, and the event of its message.
struct Receiving {
  DeviceRig rig;
  explicit Receiving(std::size_t room = 8192, void* buffer = runtime().memory) {
    REQUIRE(fi_trecv(rig.endpoint, buffer, room, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == 0);
    runtime().copies.clear();
  }
  wire::Event message(std::uint64_t bytes) const {
    wire::Event event = rig.answer(EventKind::received);
    event.flags |= wire::event_flag::to_copy;
    event.length = event.place_length = bytes;
    return event;
  }
};

}  // namespace

extern "C" {
void dryfly_gpu_reached_by_nic(const void*, int) {}
void dryfly_gpu_copied_by_runtime(const void* buffer, size_t bytes, int to_device, int pageable) {
  runtime().copied(
      buffer,
      std::string("runtime ") + (to_device ? "in " : "out ") + std::to_string(bytes) + (pageable ? " pageable" : ""),
      runtime_ps);
}
void dryfly_gpu_copied_by_processor(const void* buffer, size_t bytes, int to_device) {
  runtime().copied(buffer, std::string("processor ") + (to_device ? "in " : "out ") + std::to_string(bytes),
                   processor_ps);
}
int dryfly_gpu_has_host_access() { return runtime().host_access ? 1 : 0; }
uint64_t dryfly_gpu_lookup_ps() { return runtime().lookup_ps; }
int dryfly_gpu_of(const void* buffer) { return runtime().holds(buffer) ? 0 : -1; }
int dryfly_gpu_is_whole(const void*, size_t) { return 1; }
}

TEST_CASE("what goes into a command is copied by the runtime, or by the processor where a mapping lets it") {
  {
    const Gpus gpus("cuda", false);
    CHECK(copied_for_send() == by_runtime);
    CHECK(copied_for_send(193) == "nobody");  // the NIC fetches it
  }
  const Gpus gpus("cuda", true);
  CHECK(copied_for_send() == by_processor);
}

TEST_CASE("a mapping of a device's memory is looked at whenever it is used, but ROCr's") {
  constexpr std::uint64_t lookup_ps = 150'000;
  static char host[8192];
  const auto took = [](const char* name, auto&& call) {
    const Gpus gpus(name, true, {{"FI_CXI_DISABLE_NON_INJECT_AMO_IDC", "1"}});
    runtime().lookup_ps = lookup_ps;
    DeviceRig rig;
    const std::uint64_t start = rig.run.now_ps();
    REQUIRE(call(rig.endpoint) == 0);
    return rig.run.now_ps() - start;
  };
  const auto send = [](const void* buffer, std::size_t bytes) {
    return [=](fid_ep* endpoint) { return fi_tsend(endpoint, buffer, bytes, nullptr, 1, 0, nullptr); };
  };
  const auto receive = [](void* buffer) {
    return [=](fid_ep* endpoint) { return fi_trecv(endpoint, buffer, 8192, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr); };
  };
  const auto read = [](void* buffer) {
    return [=](fid_ep* endpoint) { return fi_read(endpoint, buffer, 8192, nullptr, 1, 0, 5, nullptr); };
  };
  const auto add = [](const void* operand) {
    return
        [=](fid_ep* endpoint) { return fi_atomic(endpoint, operand, 1, nullptr, 1, 0, 5, FI_INT64, FI_SUM, nullptr); };
  };
  char* const memory = runtime().memory;
  for (const char* name : {"cuda", "level-zero"}) {
    CHECK(took(name, add(memory)) == lookup_ps + took(name, add(host)));
    CHECK(took(name, send(memory, 8192)) == lookup_ps + costs.send_fetched_ps);
    CHECK(took(name, send(memory, 8)) == lookup_ps + processor_ps + costs.send_ps);
    CHECK(took(name, receive(memory)) == lookup_ps + costs.receive_ps);
    CHECK(took(name, read(memory)) == lookup_ps + costs.rma_fetched_ps);
    CHECK(took(name, send(host, 8192)) == costs.send_fetched_ps);
    CHECK(took(name, receive(host)) == costs.receive_ps);
  }
  CHECK(took("hip", send(memory, 8192)) == costs.send_fetched_ps);
  CHECK(took("hip", receive(memory)) == costs.receive_ps);
}

TEST_CASE("settings keep the processor from it, those of CUDA with CUDA only") {
  const auto with = [](const char* name, const char* variable, const char* value) {
    const Gpus gpus(name, true, {{variable, value}});
    return copied_for_send();
  };
  CHECK(with("cuda", "FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD", "8") == by_processor);
  CHECK(with("cuda", "FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD", "7") == by_runtime);
  CHECK(with("cuda", "FI_CXI_DISABLE_HMEM_DEV_REGISTER", "1") == by_runtime);
  CHECK(with("cuda", "FI_HMEM_CUDA_USE_GDRCOPY", "0") == by_runtime);
  CHECK(with("hip", "FI_HMEM_CUDA_USE_GDRCOPY", "0") == by_processor);
  CHECK(with("level-zero", "FI_HMEM_CUDA_USE_GDRCOPY", "0") == by_processor);
  CHECK(with("cuda", "CXI_FORK_SAFE", "0") == by_runtime);  // it is looked for, not at
  CHECK(with("cuda", "FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1") == "nobody");
}

TEST_CASE("what is injected and operands of atomics are copied too, of a device, for who knows of devices") {
  const Gpus gpus("hip", false);
  DeviceRig rig;
  char* const memory = runtime().memory;
  provider::Domain& domain = *provider::object_of<provider::Domain>(rig.domain);
  REQUIRE(fi_tinject(rig.endpoint, memory, 8, 1, 0) == 0);
  CHECK(runtime().copies == Copies{by_runtime});
  REQUIRE(fi_inject_atomic(rig.endpoint, memory, 1, 1, 0, 5, FI_INT64, FI_SUM) == 0);
  CHECK(runtime().copies == Copies{by_runtime, by_runtime});
  char host[8] = {};
  REQUIRE(fi_compare_atomic(rig.endpoint, memory, 1, nullptr, memory + 8, nullptr, host, nullptr, 1, 0, 5, FI_INT64,
                            FI_CSWAP, nullptr) == 0);
  CHECK(runtime().copies.size() == 4);
  REQUIRE(fi_tinject(rig.endpoint, host, 8, 1, 0) == 0);
  CHECK(runtime().copies.size() == 4);
  domain.knows_gpus = false;
  REQUIRE(fi_tinject(rig.endpoint, memory, 8, 1, 0) == 0);
  CHECK(runtime().copies.size() == 4);
}

TEST_CASE("a receive on a device asks to be told of what lies in buffers of the host, and no other does") {
  const Gpus gpus("cuda", false);
  const Receiving device;
  CHECK((device.rig.last().flags & wire::command_flag::to_device) != 0);
  CHECK(device.rig.last().gpu == 1);
  char host[8];
  const Receiving other(sizeof host, host);
  CHECK((other.rig.last().flags & wire::command_flag::to_device) == 0);
  Rig rig;  // without FI_HMEM
  REQUIRE(fi_trecv(rig.endpoint, runtime().memory, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == 0);
  CHECK((rig.last().flags & wire::command_flag::to_device) == 0);
}

TEST_CASE("such a message is copied to its device when its completion is read, and takes that time") {
  const auto taken = [](std::uint64_t bytes, std::uint64_t cost_ps) {
    Receiving receiving;
    receiving.rig.run.add(receiving.message(bytes));
    fi_cq_tagged_entry entry{};
    const std::uint64_t start = receiving.rig.run.now_ps();
    REQUIRE(fi_cq_read(receiving.rig.queue, &entry, 1) == 1);
    CHECK(receiving.rig.run.now_ps() == start + cost_ps + costs.received_ps);
    return runtime().copies;
  };
  {
    const Gpus gpus("cuda", false);
    CHECK(taken(4096, runtime_ps) == Copies{"runtime in 4096"});
  }
  {
    const Gpus gpus("cuda", false, {{"FI_CXI_DISABLE_HOST_REGISTER", "1"}});
    CHECK(taken(4096, runtime_ps) == Copies{"runtime in 4096 pageable"});
  }
  const Gpus gpus("cuda", true);
  CHECK(taken(4096, processor_ps) == Copies{"processor in 4096"});
  CHECK(taken(4097, runtime_ps) == Copies{"runtime in 4097"});
}

TEST_CASE("of one that is too long what fits is copied, when the error is read") {
  const Gpus gpus("cuda", false);
  Receiving receiving(100);
  wire::Event message = receiving.message(150);
  message.place_length = 100;
  message.error = FI_ETRUNC;
  receiving.rig.run.add(message);
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(receiving.rig.queue, &entry, 1) == -FI_EAVAIL);
  CHECK(runtime().copies.empty());
  fi_cq_err_entry error{};
  CHECK(fi_cq_readerr(receiving.rig.queue, &error, 0) == 1);
  CHECK(runtime().copies == Copies{"runtime in 100"});
}

TEST_CASE("the head of a rendezvous is copied at a poll of its own, in its turn") {
  const Gpus gpus("cuda", false);
  Receiving receiving;
  wire::Event head = receiving.rig.answer(EventKind::head_to_copy);
  head.buffer = reinterpret_cast<std::uint64_t>(runtime().memory);
  head.length = 2048;
  receiving.rig.run.add(head);
  wire::Event message = receiving.message(100'000);
  message.flags &= ~wire::event_flag::to_copy;
  receiving.rig.run.add(message);
  fi_cq_tagged_entry entry{};
  const std::uint64_t start = receiving.rig.run.now_ps();
  CHECK(fi_cq_read(receiving.rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(receiving.rig.run.now_ps() == start + runtime_ps);
  CHECK(runtime().copies == Copies{"runtime in 2048"});
  CHECK(fi_cq_read(receiving.rig.queue, &entry, 1) == 1);
  CHECK(runtime().copies.size() == 1);
}

TEST_CASE("a message that no queue hears of is copied at once, and what is visible by then is another poll's") {
  const Gpus gpus("cuda", false);
  DeviceRig rig;
  provider::object_of<provider::Endpoint>(rig.endpoint)->receive_flags = 0;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(fi_trecv(rig.endpoint, runtime().memory, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == 0);
    wire::Event event = rig.answer(EventKind::received);
    event.flags |= wire::event_flag::to_copy;
    event.length = event.place_length = 8;
    rig.run.add(event);
  }
  runtime().copies.clear();
  CHECK(fi_cntr_read(rig.memory_counter) == 0);
  CHECK(runtime().copies.size() == 1);
  CHECK(fi_cntr_read(rig.memory_counter) == 0);
  CHECK(runtime().copies.size() == 2);
}

TEST_CASE("an end-point that may not call the runtime copies all by the processor, and refuses what is not mapped") {
  char host[8] = {};
  char* const memory = runtime().memory;
  for (const char* name : {"cuda", "hip", "level-zero"}) {
    const Gpus gpus(name, true, {{"FI_CXI_FORCE_DEV_REG_COPY", "1"}, {"FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD", "0"}});
    CHECK(copied_for_send() == by_processor);
  }
  const Gpus gpus("hip", false, {{"FI_CXI_FORCE_DEV_REG_COPY", "1"}});
  DeviceRig rig;
  CHECK(fi_tsend(rig.endpoint, memory, 8, nullptr, 1, 0, nullptr) == -FI_EOPNOTSUPP);
  CHECK(fi_tsend(rig.endpoint, memory, 8192, nullptr, 1, 0, nullptr) == -FI_EOPNOTSUPP);
  CHECK(fi_trecv(rig.endpoint, memory, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == -FI_EOPNOTSUPP);
  CHECK(fi_write(rig.endpoint, memory, 8, nullptr, 1, 0, 5, nullptr) == -FI_EOPNOTSUPP);
  CHECK(fi_read(rig.endpoint, memory, 8, nullptr, 1, 0, 5, nullptr) == -FI_EOPNOTSUPP);
  CHECK(fi_atomic(rig.endpoint, memory, 1, nullptr, 1, 0, 5, FI_INT64, FI_SUM, nullptr) == -FI_EOPNOTSUPP);
  CHECK(rig.run.pushed.empty());
  CHECK(fi_tsend(rig.endpoint, host, 8, nullptr, 1, 0, nullptr) == 0);
  CHECK(fi_trecv(rig.endpoint, host, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == 0);
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory, 8, FI_REMOTE_READ, 0, 7, 0, &region, nullptr) == 0);
  CHECK(fi_mr_bind(region, &rig.endpoint->fid, 0) == -FI_EOPNOTSUPP);
  CHECK(fi_close(&region->fid) == 0);
}

TEST_CASE("calls of CUDA can be forbidden where there is gdrcopy, and asked after everywhere") {
  constexpr int permitted_option = FI_OPT_XPU_TRIGGER + 1;
  struct Answer {
    int forbidding;
    bool permitted;
  };
  const auto after = [](std::initializer_list<std::pair<std::string, std::string>> settings, const char* name,
                        bool host_access) {
    const Gpus gpus(name, host_access, settings);
    const DeviceRig rig;
    bool permitted = false;
    std::size_t length = sizeof permitted;
    const int forbidding =
        fi_setopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, permitted_option, &permitted, sizeof permitted);
    REQUIRE(fi_getopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, permitted_option, &permitted, &length) == 0);
    CHECK(length == sizeof permitted);
    return std::pair{forbidding, permitted};
  };
  CHECK(after({}, "cuda", true) == std::pair{0, false});
  CHECK(after({}, "cuda", false) == std::pair{-FI_EOPNOTSUPP, true});
  CHECK(after({{"FI_HMEM_CUDA_USE_GDRCOPY", "0"}}, "cuda", true) == std::pair{-FI_EOPNOTSUPP, true});
  CHECK(after({{"FI_HMEM", "system"}}, "cuda", true) == std::pair{-FI_EOPNOTSUPP, true});
  CHECK(after({}, "hip", true) == std::pair{-FI_EOPNOTSUPP, true});

  const Gpus gpus("cuda", true, {{"FI_CXI_FORCE_DEV_REG_COPY", "1"}});
  const DeviceRig rig;
  bool permitted = true;
  std::size_t length = sizeof permitted;
  CHECK(fi_setopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, permitted_option, &permitted, sizeof permitted) == 0);
  CHECK(fi_getopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, permitted_option, &permitted, &length) == 0);
  CHECK(!permitted);  // which that setting decides
  CHECK(fi_setopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, permitted_option, &permitted, 4) == -FI_EINVAL);
  length = 0;
  CHECK(fi_getopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, permitted_option, &permitted, &length) == -FI_ETOOSMALL);
  CHECK(fi_setopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &permitted, 4) == -FI_ENOPROTOOPT);
  CHECK(fi_setopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_XPU_TRIGGER, &permitted, 4) == -FI_ENOPROTOOPT);
}

TEST_CASE("a region is of the memory that its pointer says, whatever interface and device are named") {
  const Gpus gpus("hip", false);
  DeviceRig rig;
  char host[8];
  for (void* const memory : {static_cast<void*>(runtime().memory), static_cast<void*>(host)}) {
    iovec part{memory, 8};
    fi_mr_attr attributes{};
    attributes.mr_iov = &part;
    attributes.iov_count = 1;
    attributes.access = FI_REMOTE_READ;
    attributes.requested_key = 7;
    attributes.iface = FI_HMEM_CUDA;
    attributes.device.cuda = 99;
    fid_mr* region = nullptr;
    REQUIRE(fi_mr_regattr(rig.domain, &attributes, FI_HMEM_DEVICE_ONLY, &region) == 0);
    REQUIRE(fi_mr_bind(region, &rig.endpoint->fid, 0) == 0);
    REQUIRE(fi_mr_enable(region) == 0);
    CHECK(rig.last().gpu == (memory == host ? 0 : 1));
    CHECK(fi_close(&region->fid) == 0);
    attributes.iov_count = 2;
    CHECK(fi_mr_regattr(rig.domain, &attributes, 0, &region) == -FI_ENOSYS);  // the machine's provider takes one
    attributes.iov_count = 0;
    CHECK(fi_mr_regattr(rig.domain, &attributes, 0, &region) == -FI_EINVAL);
  }
}

TEST_CASE("FI_HMEM names the runtimes that libfabric looks for") {
  const auto known = [](const char* name, const char* value) {
    const Gpus gpus(name, false, {{"FI_HMEM", value}});
    const DeviceRig rig;
    return provider::object_of<provider::Domain>(rig.domain)->knows_gpus;
  };
  CHECK(known("cuda", "cuda"));
  CHECK(known("cuda", "CUDA;ze"));
  CHECK(known("cuda", ""));
  CHECK_FALSE(known("cuda", "system;rocr"));
  CHECK(known("hip", "rocr"));
  CHECK(known("level-zero", "ze"));
}
