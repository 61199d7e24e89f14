#include "launch/pmi2.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "launch/pmi_number.hpp"

namespace dryfly::launch {
namespace {

constexpr std::size_t longest_value = 1023;  // PMI2_MAX_VALLEN without the end of the text

// The value of a key in `cmd=NAME;KEY=VALUE;...`; empty if it is not there, which no value of the protocol is.
std::string_view field(std::string_view message, std::string_view key) {
  while (!message.empty()) {
    const auto end = message.find(';');
    const auto token = message.substr(0, end);
    if (token.size() > key.size() && token[key.size()] == '=' && token.starts_with(key)) {
      return token.substr(key.size() + 1);
    }
    message = end == std::string_view::npos ? std::string_view{} : message.substr(end + 1);
  }
  return {};
}

constexpr std::string_view succeeded = ";rc=0";
constexpr std::string_view reserved = ";rc=-1;errmsg=key_is_reserved";

}  // namespace

void Pmi2::handle_message(int rank, std::string_view message) {
  const auto name = field(message, "cmd");
  const auto thread = field(message, "thrid");
  if (name == "kvs-get" || name == "kvs-put" || name == "info-getjobattr") {
    handle_value(rank, name, message);
  } else if (name == "kvs-fence") {
    fence(rank, thread);
  } else if (name == "info-getnodeattr") {
    get_node_attribute(rank, message);
  } else if (name == "info-putnodeattr") {
    put_node_attribute(rank, message);
  } else if (name == "fullinit") {
    answer(rank, name, thread,
           ";rc=0;rank=" + std::to_string(rank) + ";size=" + std::to_string(job_.size()) + ";appnum=0;pmiverbose=0");
  } else if (name == "job-getid") {
    answer(rank, name, thread, ";rc=0;jobid=" + job_.name());
  } else if (name == "finalize") {
    clients_.finalise(rank);
    answer(rank, name, thread, succeeded);
  } else if (name == "abort") {
    const auto code = field(message, "exitcode");
    clients_.abort(rank, code.empty() ? 1 : pmi_number(code));
  } else if (name == "name-publish" || name == "name-lookup" || name == "name-unpublish") {
    handle_service(rank, name, message);
  } else if (name == "spawn" || name == "job-connect" || name == "job-disconnect") {
    answer(rank, name, thread, ";rc=-1;errmsg=dynamic_processes_are_not_served");
  } else {
    answer(rank, name, thread, ";rc=-1;errmsg=not_served");
  }
}

void Pmi2::handle_value(int rank, std::string_view name, std::string_view message) {
  const auto thread = field(message, "thrid");
  const auto key = field(message, "key");
  if (name == "kvs-put") {
    answer(rank, name, thread, job_.put(key, field(message, "value")) ? succeeded : reserved);
  } else if (key == "universeSize") {
    const std::string size = std::to_string(job_.size());
    answer_found(rank, name, thread, &size);
  } else {
    answer_found(rank, name, thread, job_.find(key));
  }
}

void Pmi2::get_node_attribute(int rank, std::string_view message) {
  const auto key = field(message, "key");
  const auto thread = field(message, "thrid");
  const std::string* const value = job_.find_on_node(rank, key);
  if (value == nullptr && field(message, "wait") == "TRUE") {
    waiting_.push_back({rank, std::string(key), std::string(thread)});
  } else {
    answer_found(rank, "info-getnodeattr", thread, value);
  }
}

void Pmi2::put_node_attribute(int rank, std::string_view message) {
  const auto key = field(message, "key");
  const bool allowed = job_.put_on_node(rank, key, field(message, "value"));
  answer(rank, "info-putnodeattr", field(message, "thrid"), allowed ? succeeded : reserved);
  if (!allowed) return;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.key != key || !job_.same_node(waiting.rank, rank)) return false;
    answer_found(waiting.rank, "info-getnodeattr", waiting.thread, job_.find_on_node(rank, key));
    return true;
  });
}

void Pmi2::fence(int rank, std::string_view thread) {
  fencing_[static_cast<std::size_t>(rank)].emplace_back(thread);
  const auto opened = job_.enter_barrier(rank, "WORLD");
  for (const int member : *opened) {
    auto& threads = fencing_[static_cast<std::size_t>(member)];
    if (threads.empty()) continue;  // it has come by a line of PMI-1
    answer(member, "kvs-fence", threads.front(), succeeded);
    threads.pop_front();
  }
}

void Pmi2::handle_service(int rank, std::string_view name, std::string_view message) {
  const auto service = field(message, "name");
  const auto thread = field(message, "thrid");
  if (name == "name-publish") {
    const bool done = job_.publish(service, field(message, "port"));
    answer(rank, name, thread, done ? succeeded : ";rc=1;errmsg=duplicate_service");
  } else if (name == "name-unpublish") {
    answer(rank, name, thread, job_.withdraw(service) ? succeeded : ";rc=1;errmsg=service_not_found");
  } else {
    const std::string* const port = job_.port_of(service);
    answer(rank, name, thread, port != nullptr ? ";rc=0;port=" + *port : ";rc=1;errmsg=service_not_found");
  }
}

void Pmi2::answer_found(int rank, std::string_view name, std::string_view thread, const std::string* value) {
  const bool given = value != nullptr && !value->empty() && value->size() <= longest_value;
  answer(rank, name, thread, given ? ";rc=0;found=TRUE;value=" + *value : ";rc=0;found=FALSE");
}

void Pmi2::answer(int rank, std::string_view name, std::string_view thread, std::string_view rest) {
  std::string text = "cmd=" + std::string(name) + "-response";
  if (!thread.empty()) text.append(";thrid=").append(thread);
  text.append(rest).push_back(';');
  std::array<char, 16> length{};
  std::snprintf(length.data(), length.size(), "%6zu", text.size());
  clients_.answer(rank, length.data());
  clients_.answer(rank, text);
}

}  // namespace dryfly::launch
