#include "launch/pmi.hpp"

#include <charconv>
#include <utility>

namespace dryfly::launch {
namespace {

// No line comes near this: a client beyond it is not speaking PMI.
constexpr std::size_t longest_line = 1 << 20;
constexpr std::size_t digits_of_length = 6;

// Of a request of PMI-2, whose length is set to the right among blanks; nothing if that is none.
std::optional<std::size_t> length_of_message(std::string_view bytes) {
  const auto text = bytes.substr(0, digits_of_length);
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  std::size_t length = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + begin, last, length);
  if (error != std::errc{} || end != last) return {};
  return length;
}

}  // namespace

PmiServer::PmiServer(std::string job_name, std::vector<int> node_of_rank)
    : clients_(node_of_rank.size()), job_(std::move(job_name), std::move(node_of_rank)), inputs_(clients_.count()) {}

void PmiServer::receive(int rank, std::string_view bytes) {
  Input& input = inputs_[static_cast<std::size_t>(rank)];
  if (input.lost) return;
  std::string whole;
  if (!input.partial.empty()) {
    whole = std::exchange(input.partial, {}).append(bytes);
    bytes = whole;
  }
  while (true) {
    const auto rest = take_request(rank, bytes);
    if (rest.size() == bytes.size()) break;
    bytes = rest;
  }
  input.partial = bytes;
  if (input.partial.size() > longest_line) {
    input.partial.clear();
    pmi1_.refuse(rank);
  }
}

// Gives what is behind the first request, or all of it if that is not whole.
std::string_view PmiServer::take_request(int rank, std::string_view bytes) {
  // An MPI that begins once more says so by a line again.
  const bool is_line = clients_.version(rank) == 1 || bytes.starts_with("c");
  if (!is_line) return take_message(rank, bytes);
  const auto end = bytes.find('\n');
  if (end == std::string_view::npos) return bytes;
  pmi1_.handle_line(rank, bytes.substr(0, end));
  return bytes.substr(end + 1);
}

std::string_view PmiServer::take_message(int rank, std::string_view bytes) {
  if (bytes.size() < digits_of_length) return bytes;
  const auto length = length_of_message(bytes);
  if (!length) {
    inputs_[static_cast<std::size_t>(rank)].lost = true;
    pmi2_.refuse(rank);
    return {};
  }
  if (bytes.size() - digits_of_length < *length) return bytes;
  pmi2_.handle_message(rank, bytes.substr(digits_of_length, *length));
  return bytes.substr(digits_of_length + *length);
}

}  // namespace dryfly::launch
