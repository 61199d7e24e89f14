#include "launch/pmix.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <semaphore>
#include <system_error>
#include <utility>

#include "core/spec/spec.hpp"
#include "launch/pmix_info.hpp"

namespace dryfly::launch {
namespace {

using namespace pmix;

// The same in every run: Open MPI derives numbers from it and sends them in messages (MPI_Intercomm_create), packed
// into fewer bytes the smaller they are. Files that it names after them lie in the run's own folder.
constexpr char job_name[] = "dryfly";

// All ranks are clients of this one server, so what they have given is what there is.
Status on_fence(const Process*, std::size_t, const Info*, std::size_t, char* data, std::size_t bytes, Exchanged done,
                void* context) {
  done(success, data, bytes, context, ::free, data);
  return success;
}

// Asked for a rank of another server, of which there is none.
Status on_direct_modex(const Process*, const Info*, std::size_t, Exchanged, void*) { return not_found; }

// Registrations are done by the library's thread.
class Completion {
 public:
  static void done(Status status, void* data) {
    auto& self = *static_cast<Completion*>(data);
    self.status_ = status;
    self.ready_.release();
  }
  Status wait() {
    ready_.acquire();
    return status_;
  }

 private:
  Status status_ = success;
  std::binary_semaphore ready_{0};
};

template <class Register>
void complete(const char* what, Register call) {
  Completion completion;
  Status status = call(&Completion::done, static_cast<void*>(&completion));
  if (status == success) status = completion.wait();
  if (status == success || status == operation_succeeded) return;
  throw SpecError(std::string(what) + " of the MPI library's PMIx server has failed (status " + std::to_string(status) +
                  ")");
}

std::string joined(const std::vector<std::string>& words, char separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

struct Node {
  std::string name;
  std::uint32_t number = 0;
  std::vector<std::string> ranks;
  int first_rank = 0;
};

// By number in the plan, which is also their order for MPI.
std::map<int, Node> nodes_of(const Plan& plan) {
  std::map<int, Node> nodes;
  for (int rank = 0; rank < plan.size(); ++rank) {
    const int planned = plan.ranks[static_cast<std::size_t>(rank)].node;
    Node& node = nodes[planned];
    if (node.ranks.empty()) node.first_rank = rank;
    node.name = plan.node_names.at(planned);
    node.ranks.push_back(std::to_string(rank));
  }
  std::uint32_t number = 0;
  for (auto& [planned, node] : nodes) node.number = number++;
  return nodes;
}

// The keys are those of the PMIx standard; what each of them means stands behind its name there.
InfoList about_node(const Node& node) {
  InfoList list;
  list.add("pmix.hname", node.name);
  list.add("pmix.nodeid", node.number);
  list.add("pmix.lpeers", joined(node.ranks, ','));
  list.add("pmix.local.size", static_cast<std::uint32_t>(node.ranks.size()));
  list.add("pmix.node.size", static_cast<std::uint32_t>(node.ranks.size()));
  list.add_rank("pmix.lldr", node.first_rank);
  return list;
}

InfoList about_rank(int rank, const PlannedRank& planned, const Node& node) {
  InfoList list;
  list.add_rank("pmix.rank", rank);
  list.add("pmix.appnum", std::uint32_t{0});
  list.add_rank("pmix.grank", rank);
  list.add_rank("pmix.apprank", rank);
  list.add_short("pmix.lrank", planned.local);
  list.add_short("pmix.nrank", planned.local);
  list.add("pmix.nodeid", node.number);
  list.add("pmix.hname", node.name);
  list.add("pmix.spawned", false);
  list.add("pmix.reinc", std::uint32_t{0});
  return list;
}

InfoList about_application(int size, const std::vector<std::string>& program) {
  InfoList list;
  list.add("pmix.appnum", std::uint32_t{0});
  list.add("pmix.app.size", static_cast<std::uint32_t>(size));
  // Without it Open MPI joins what the program hands to MPI_Init, to the null behind it, which need not be there.
  list.add("pmix.app.argv", joined(program, ' '));
  list.add_rank("pmix.aldr", 0);
  return list;
}

InfoList about_job(const Plan& plan, const std::vector<std::string>& program) {
  const auto nodes = nodes_of(plan);
  const auto size = static_cast<std::uint32_t>(plan.size());
  std::vector<std::string> names;
  std::vector<std::string> ranks;
  for (const auto& [planned, node] : nodes) {
    names.push_back(node.name);
    ranks.push_back(joined(node.ranks, ','));
  }
  InfoList list;
  list.add("pmix.jobid", std::string(job_name));
  list.add("pmix.nmap", joined(names, ','));
  list.add("pmix.pmap", joined(ranks, ';'));
  list.add("pmix.nlist", joined(names, ','));
  list.add("pmix.num.nodes", static_cast<std::uint32_t>(nodes.size()));
  list.add("pmix.univ.size", size);
  list.add("pmix.job.size", size);
  list.add("pmix.max.size", size);
  list.add("pmix.job.napps", std::uint32_t{1});
  list.add_rank("pmix.offset", 0);
  list.add("pmix.tmpdir", plan.pmix_folder);
  list.add("pmix.nsdir", plan.pmix_folder);
  list.add("pmix.tdir.rmclean", true);
  for (const auto& [planned, node] : nodes) list.add("pmix.node.arr", about_node(node));
  list.add("pmix.app.arr", about_application(plan.size(), program));
  for (int rank = 0; rank < plan.size(); ++rank) {
    const PlannedRank& planned = plan.ranks[static_cast<std::size_t>(rank)];
    list.add("pmix.pdata", about_rank(rank, planned, nodes.at(planned.node)));
  }
  return list;
}

}  // namespace

PmixServer::PmixServer(const Plan& plan, const std::vector<std::string>& program)
    : plan_(plan), program_(program), event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  for (int rank = 0; rank < plan.size(); ++rank) clients_.push_back({this, rank, Phase::untouched});
  load(plan.pmix_library);
  start();
  register_job();
  register_clients();
}

void PmixServer::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw SpecError("the MPI library's PMIx server cannot be loaded: " + std::string(dlerror()));
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr) throw SpecError(library + " has no PMIx server: it lacks " + name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(calls_.init, "PMIx_server_init");
  find(calls_.register_nspace, "PMIx_server_register_nspace");
  find(calls_.register_client, "PMIx_server_register_client");
  find(calls_.setup_fork, "PMIx_server_setup_fork");
}

void PmixServer::start() {
  host_.connected = on_connected;
  host_.finalized = on_finalized;
  host_.abort = on_abort;
  host_.fence = on_fence;
  host_.direct_modex = on_direct_modex;
  InfoList wishes;
  wishes.add("pmix.srv.nspace", std::string("dryfly-server"));
  wishes.add_rank("pmix.srv.rank", 0);
  wishes.add("pmix.srvr.tmpdir", plan_.pmix_folder);
  wishes.add("pmix.sys.tmpdir", plan_.pmix_folder);
  const Status status = calls_.init(&host_, wishes.data(), wishes.size());
  if (status != success) {
    throw SpecError("the MPI library's PMIx server does not start (status " + std::to_string(status) + ")");
  }
}

void PmixServer::register_job() {
  InfoList job = about_job(plan_, program_);
  complete("registering the job", [&](Done done, void* data) {
    return calls_.register_nspace(job_name, plan_.size(), job.data(), job.size(), done, data);
  });
}

void PmixServer::register_clients() {
  for (Client& client : clients_) {
    const Process who = process(static_cast<std::uint32_t>(client.rank));
    complete("registering a rank", [&](Done done, void* data) {
      return calls_.register_client(&who, getuid(), getgid(), &client, done, data);
    });
  }
}

Process PmixServer::process(std::uint32_t rank) const {
  Process who{};
  std::strcpy(who.name_space, job_name);
  who.rank = rank;
  return who;
}

std::vector<std::string> PmixServer::environment_of(int rank) {
  const Process who = process(static_cast<std::uint32_t>(rank));
  char** variables = nullptr;
  const Status status = calls_.setup_fork(&who, &variables);
  if (status != success) throw SpecError("the MPI library's PMIx server knows no environment for a rank");
  std::vector<std::string> result;
  for (char** variable = variables; variable != nullptr && *variable != nullptr; ++variable) {
    result.emplace_back(*variable);
    ::free(*variable);
  }
  ::free(variables);
  // The server stands in for those of all nodes; a client takes this for where it is.
  result.push_back("PMIX_HOSTNAME=" + plan_.node_names.at(plan_.ranks[static_cast<std::size_t>(rank)].node));
  return result;
}

void PmixServer::note(Client& client, Phase phase) {
  const std::scoped_lock lock(mutex_);
  client.phase = phase;
  if (phase == Phase::initialised) begun_.push_back(client.rank);
  anyone_initialised_ = anyone_initialised_ || phase == Phase::initialised;
  eventfd_write(event_fd_, 1);
}

Status PmixServer::on_connected(const Process*, void* object, Done, void*) {
  auto& client = *static_cast<Client*>(object);
  client.server->note(client, Phase::initialised);
  return operation_succeeded;
}

Status PmixServer::on_finalized(const Process*, void* object, Done, void*) {
  auto& client = *static_cast<Client*>(object);
  client.server->note(client, Phase::finalised);
  return operation_succeeded;
}

// The client is not answered: it waits until the job is ended, which it asked for.
Status PmixServer::on_abort(const Process*, void* object, int code, const char*, Process*, std::size_t, Done, void*) {
  auto& client = *static_cast<Client*>(object);
  PmixServer& server = *client.server;
  const std::scoped_lock lock(server.mutex_);
  if (!server.abort_) server.abort_ = Abort{client.rank, code};
  eventfd_write(server.event_fd_, 1);
  return success;
}

void PmixServer::clear() const {
  eventfd_t count = 0;
  eventfd_read(event_fd_, &count);
}

PmixServer::Phase PmixServer::phase(int rank) const {
  const std::scoped_lock lock(mutex_);
  return clients_[static_cast<std::size_t>(rank)].phase;
}

bool PmixServer::anyone_initialised() const {
  const std::scoped_lock lock(mutex_);
  return anyone_initialised_;
}

std::vector<int> PmixServer::take_begun() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(begun_, {});
}

std::optional<PmixServer::Abort> PmixServer::abort() const {
  const std::scoped_lock lock(mutex_);
  return abort_;
}

}  // namespace dryfly::launch
