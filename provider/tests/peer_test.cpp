// The provider below one that links several and owns the receives, as libfabric's lnx does.
#include "provider/peer_abi.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::CommandKind;
using wire::EventKind;
namespace peer = dryfly::provider::peer;

extern "C" fi_provider* dryfly_node_provider(void);

namespace {

// The linking provider: one receive at most, one message that waits at most.
struct Owner {
  peer::QueueOwnerCalls queue_calls{sizeof(peer::QueueOwnerCalls), write, write_error};
  peer::Queue queue{{}, &queue_calls};
  peer::ReceiveOwnerCalls receive_calls{sizeof(peer::ReceiveOwnerCalls), nullptr,   get_tagged, nullptr, queue_tagged,
                                        for_each_unknown_source,         free_entry};
  peer::SharedReceive shared{{}, &receive_calls, nullptr};

  peer::Entry entry{};
  peer::Match asked{};
  bool has_receive = false;
  bool queued = false;
  int freed = 0;
  std::vector<fi_cq_tagged_entry> completions;
  std::vector<int> errors;
  fi_addr_t source = 0;

  static Owner* one;
  Owner() { one = this; }

  static ssize_t write(peer::Queue*, void* context, std::uint64_t flags, std::size_t length, void* buffer,
                       std::uint64_t data, std::uint64_t tag, fi_addr_t source) {
    one->completions.push_back({context, flags, length, buffer, data, tag});
    one->source = source;
    return 0;
  }
  static ssize_t write_error(peer::Queue*, const fi_cq_err_entry* error) {
    one->errors.push_back(error->err);
    return 0;
  }
  static int get_tagged(peer::SharedReceive*, peer::Match* match, peer::Entry** entry) {
    one->asked = *match;
    *entry = &one->entry;
    return one->has_receive ? 0 : -FI_ENOENT;
  }
  static int queue_tagged(peer::Entry*) {
    one->queued = true;
    return 0;
  }
  static void for_each_unknown_source(peer::SharedReceive*, fi_addr_t (*source_of)(peer::Entry*)) {
    if (one->queued) one->entry.source = source_of(&one->entry);
  }
  static void free_entry(peer::Entry*) { ++one->freed; }
};
Owner* Owner::one = nullptr;

struct Linked {
  Owner owner;
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  fid_cq* queue = nullptr;
  fid_cq* second_queue = nullptr;
  fid_ep* receives = nullptr;
  fid_ep* endpoint = nullptr;
  FakeRun& run = fake_run();
  char buffer[64] = {};
  iovec part{buffer, sizeof buffer};

  explicit Linked(fi_provider* provider) {
    run.pushed.clear();
    run.events.clear();
    run.payloads.clear();
    Hints hints;
    hints.info.caps = FI_TAGGED | FI_PEER;
    REQUIRE(provider->getinfo(FI_VERSION(1, 18), nullptr, nullptr, 0, &hints.info, &info) == 0);
    REQUIRE(provider->fabric(info->fabric_attr, &fabric, nullptr) == 0);
    REQUIRE(fi_domain(fabric, info, &domain, nullptr) == 0);
    fi_av_attr av{};
    REQUIRE(fi_av_open(domain, &av, &addresses, nullptr) == 0);
    fi_cq_attr cq{};
    cq.flags = FI_PEER;
    peer::QueueContext queue_context{sizeof queue_context, &owner.queue};
    REQUIRE(fi_cq_open(domain, &cq, &queue, &queue_context) == 0);
    REQUIRE(fi_cq_open(domain, &cq, &second_queue, &queue_context) == 0);
    REQUIRE(fi_endpoint(domain, info, &endpoint, nullptr) == 0);
    REQUIRE(fi_ep_bind(endpoint, &addresses->fid, 0) == 0);
    // The second queue of the same owner: what comes is read from the first.
    REQUIRE(fi_ep_bind(endpoint, &second_queue->fid, FI_TRANSMIT | FI_RECV) == 0);
    fi_rx_attr receive{};
    receive.op_flags = FI_PEER;
    peer::ReceiveContext receive_context{sizeof receive_context, &owner.shared};
    REQUIRE(fi_srx_context(domain, &receive, &receives, &receive_context) == 0);
    REQUIRE(fi_ep_bind(endpoint, &receives->fid, 0) == 0);
    REQUIRE(fi_enable(endpoint) == 0);
    owner.entry.parts = &part;
    owner.entry.count = 1;
    owner.entry.context = &owner;
  }
  ~Linked() {
    CHECK(fi_close(&endpoint->fid) == 0);
    CHECK(fi_close(&receives->fid) == 0);
    CHECK(fi_close(&queue->fid) == 0);
    CHECK(fi_close(&second_queue->fid) == 0);
    CHECK(fi_close(&addresses->fid) == 0);
    CHECK(fi_close(&domain->fid) == 0);
    CHECK(fi_close(&fabric->fid) == 0);
    release(info);
  }

  void name(std::uint32_t rank, fi_addr_t as) {
    const provider::Address address{wire::make_address(rank, 0), 0};
    REQUIRE(fi_av_insert(addresses, &address, 1, &as, FI_AV_USER_ID, nullptr) == 1);
    CHECK(as == 0);  // the table's own name for it, by which it is sent to
  }
  // The first of the waiting peeks has found a message of rank 3.
  void arrives() {
    wire::Event event{};
    event.kind = EventKind::peeked;
    event.flags = wire::event_flag::found | wire::event_flag::has_data | wire::event_flag::tagged;
    event.context = run.pushed[1].command.context;
    event.peer = wire::make_address(3, 0);
    event.tag = 77;
    event.data = 5;
    event.length = 4;
    run.add(event);
  }
  void poll() const {
    CHECK(fi_cq_read(queue, nullptr, 0) == -FI_EAGAIN);
    CHECK(fi_cq_read(second_queue, nullptr, 0) == -FI_EAGAIN);
  }
  const wire::Command& last() const { return run.pushed.back().command; }
  void require_claim() const {
    CHECK(last().kind == CommandKind::receive_claimed);
    CHECK(last().claim == run.pushed[1].command.context);
    CHECK(last().buffer == reinterpret_cast<std::uint64_t>(buffer));
  }
  void message_is_there(int error = 0) {
    wire::Event event{};
    event.kind = EventKind::received;
    event.context = last().context;
    event.peer = wire::make_address(3, 0);
    event.tag = 77;
    event.length = error == 0 ? 4 : 100;
    event.place_length = error == 0 ? 4 : 64;
    run.add(event);
    poll();
  }
};

}  // namespace

TEST_CASE("the end-point of a linked provider keeps peeks waiting and posts no receive") {
  const Linked linked(fi_prov_ini());
  REQUIRE(linked.run.pushed.size() > 2);
  CHECK(linked.run.pushed[0].command.kind == CommandKind::open_endpoint);
  for (std::size_t i = 1; i < linked.run.pushed.size(); ++i) {
    const wire::Command& watch = linked.run.pushed[i].command;
    CHECK(watch.kind == CommandKind::tagged_peek);
    CHECK(watch.flags == (wire::command_flag::any_source | wire::command_flag::claim | wire::command_flag::waits));
  }
}

TEST_CASE("an arrival that meets a receive of the owner's is taken into its buffer and reported to the owner") {
  Linked linked(dryfly_node_provider());
  linked.name(3, 0x4200);
  linked.owner.has_receive = true;
  linked.arrives();
  linked.poll();
  CHECK(linked.owner.asked.source == 0x4200);
  CHECK(linked.owner.asked.tag == 77);
  CHECK(linked.owner.asked.message_bytes == 4);
  linked.require_claim();
  CHECK(linked.owner.completions.empty());
  linked.message_is_there();
  REQUIRE(linked.owner.completions.size() == 1);
  CHECK(linked.owner.completions[0].op_context == &linked.owner);
  CHECK(linked.owner.completions[0].len == 4);
  CHECK(linked.owner.completions[0].tag == 77);
  CHECK(linked.owner.source == 0x4200);
  CHECK(linked.owner.freed == 1);
}

TEST_CASE("an arrival without a receive waits with the owner, which starts or discards it later") {
  Linked linked(fi_prov_ini());
  linked.arrives();
  linked.poll();
  CHECK(linked.owner.queued);
  CHECK(linked.owner.asked.source == FI_ADDR_UNSPEC);
  CHECK(linked.owner.entry.data == 5);
  linked.owner.entry.source = FI_ADDR_UNSPEC;
  linked.name(3, 0x100);
  CHECK(linked.owner.entry.source == 0x100);  // known now

  SUBCASE("started") {
    CHECK(linked.owner.shared.peer_calls->start_tagged(&linked.owner.entry) == 0);
    linked.require_claim();
    linked.message_is_there();
    CHECK(linked.owner.completions.size() == 1);
  }
  SUBCASE("started with a buffer that is too small") {
    CHECK(linked.owner.shared.peer_calls->start_tagged(&linked.owner.entry) == 0);
    linked.message_is_there(FI_ETRUNC);
    CHECK(linked.owner.errors == std::vector<int>{FI_ETRUNC});
  }
  SUBCASE("discarded") {
    CHECK(linked.owner.shared.peer_calls->discard_tagged(&linked.owner.entry) == 0);
    CHECK(linked.last().kind == CommandKind::receive_claimed);
    CHECK(linked.last().length == 0);
    linked.message_is_there(FI_ETRUNC);
    CHECK(linked.owner.completions.empty());
    CHECK(linked.owner.errors.empty());
  }
}

TEST_CASE("the on-node face has one domain, called shm, and each face refuses the other's hints") {
  Hints hints;
  char shm[] = "shm";
  char cxi[] = "cxi";
  hints.fabric.prov_name = shm;
  fi_info* info = nullptr;
  CHECK(get_info(&hints.info, &info) == -FI_ENODATA);
  REQUIRE(dryfly_node_provider()->getinfo(FI_VERSION(1, 18), nullptr, nullptr, 0, &hints.info, &info) == 0);
  CHECK(std::string(info->domain_attr->name) == "shm");
  CHECK(std::string(info->fabric_attr->name) == "shm");
  CHECK(info->next == nullptr);
  release(info);
  hints.fabric.prov_name = cxi;
  CHECK(dryfly_node_provider()->getinfo(FI_VERSION(1, 18), nullptr, nullptr, 0, &hints.info, &info) == -FI_ENODATA);
}
