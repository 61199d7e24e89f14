#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/motif/goal/schedules.hpp"
#include "core/spec/spec.hpp"

namespace dryfly::motif::goal {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Words of letters, numbers, and single characters; a line's end, as `;`, is a word of its own.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) { next(); }

  std::string_view word() const { return word_; }
  std::uint32_t line() const { return line_; }
  bool at_end() const { return word_.empty(); }
  bool ends_statement() const { return word_ == "\n" || word_ == ";"; }

  void next() {
    if (word_ == "\n") ++line_;
    skip();
    const std::size_t begin = at_;
    if (at_ == text_.size()) {
      word_ = {};
      return;
    }
    if (is_letter(text_[at_])) {
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '_')) ++at_;
    } else if (is_digit(text_[at_])) {
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    } else {
      ++at_;
    }
    word_ = text_.substr(begin, at_ - begin);
  }

 private:
  void skip() {
    for (;;) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      if (text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_.substr(at_, 2) == "/*") {
        for (at_ += 2; at_ < text_.size() && text_.substr(at_, 2) != "*/"; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
        at_ = std::min(at_ + 2, text_.size());
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view word_;
  std::uint32_t line_ = 1;
};

struct Dependence {
  std::uint32_t step;
  std::uint32_t follower;
  bool on_begin;
};

// Labels of dependences whose steps may come later in the block.
struct Unresolved {
  std::string_view follower;
  std::string_view step;
  std::uint32_t line;
  bool on_begin;
};

class Parser {
 public:
  Parser(const std::string& file_name, std::string_view text) : file_name_(file_name), words_(text) {}

  Schedules parse() {
    while (skip_ends(), !words_.at_end()) {
      if (words_.word() == "num_ranks") {
        read_count();
      } else if (words_.word() == "rank") {
        read_rank();
      } else {
        fail("`" + std::string(words_.word()) + "`", "num_ranks or rank");
      }
    }
    if (out_.ranks.empty()) throw SpecError(file_name_ + ": num_ranks is missing");
    out_.steps.push_back({.followers = static_cast<std::uint32_t>(out_.followers.size())});
    return std::move(out_);
  }

 private:
  void skip_ends() {
    while (words_.ends_statement()) words_.next();
  }

  [[noreturn]] void fail_at(std::uint32_t line, const std::string& what) const {
    const std::string where = rank_ ? ", rank " + std::to_string(*rank_) : "";
    throw SpecError(file_name_ + ", line " + std::to_string(line) + where + ": " + what);
  }
  [[noreturn]] void fail(const std::string& found, const std::string& accepted) const {
    fail_at(words_.line(), found + ": accepted is " + accepted);
  }

  std::string found() const {
    if (words_.at_end()) return "the file ends";
    return words_.word() == "\n" ? "the line ends" : "`" + std::string(words_.word()) + "`";
  }

  std::uint64_t number(const char* name, std::uint64_t most) {
    const std::string_view word = words_.word();
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc{} || stop != word.data() + word.size() || value > most) {
      fail(std::string(name) + " = " + found(), "a whole number from 0 to " + std::to_string(most));
    }
    words_.next();
    return value;
  }

  void take(std::string_view wanted) {
    if (words_.word() != wanted) fail(found(), "`" + std::string(wanted) + "`");
    words_.next();
  }

  // As a number that may be -1, which is then `any`.
  std::uint32_t number_or_any(const char* name, std::uint64_t most, std::uint32_t any, bool may_be_any) {
    if (words_.word() != "-") return static_cast<std::uint32_t>(number(name, most));
    if (!may_be_any) fail(std::string(name) + " = `-`", "a whole number; only a receive may have -1");
    words_.next();
    take("1");
    return any;
  }

  void read_count() {
    words_.next();
    if (!out_.ranks.empty()) fail_at(words_.line(), "num_ranks is given twice");
    const std::uint64_t count = number("num_ranks", most_ranks);
    if (count == 0) fail_at(words_.line(), "num_ranks = 0: accepted is a whole number from 1");
    out_.ranks.resize(count);
  }

  void read_rank() {
    const std::uint32_t line = words_.line();
    words_.next();
    if (out_.ranks.empty()) fail_at(line, "a rank before num_ranks");
    const std::uint64_t rank = number("rank", UINT32_MAX);
    if (rank >= out_.ranks.size()) {
      fail_at(line, "rank = " + std::to_string(rank) + ": accepted is 0 to " + std::to_string(out_.ranks.size() - 1) +
                        ", from num_ranks");
    }
    rank_ = static_cast<std::uint32_t>(rank);
    Range& range = out_.ranks[rank];
    if (range.line != 0) fail_at(line, "the rank is given twice, first in line " + std::to_string(range.line));
    range = {.first = static_cast<std::uint32_t>(out_.steps.size()), .last = 0, .line = line};
    skip_ends();
    take("{");
    labels_.clear();
    unresolved_.clear();
    while (skip_ends(), words_.word() != "}") {
      if (words_.at_end()) fail("the file ends", "`}`");
      read_statement();
    }
    words_.next();
    range.last = static_cast<std::uint32_t>(out_.steps.size());
    connect(range);
    rank_.reset();
  }

  void read_statement() {
    const std::string_view first = words_.word();
    const std::uint32_t line = words_.line();
    if (!is_letter(first[0])) fail(found(), "calc, send, recv, a label or `}`");
    words_.next();
    if (first == "calc" || first == "send" || first == "recv") return read_step(first, {}, line);
    if (words_.word() == ":") {
      words_.next();
      const std::string_view verb = words_.word();
      if (verb != "calc" && verb != "send" && verb != "recv") fail(found(), "calc, send or recv");
      words_.next();
      return read_step(verb, first, line);
    }
    const bool on_begin = words_.word() == "irequires";
    if (!on_begin && words_.word() != "requires") fail(found(), "`:`, requires or irequires");
    words_.next();
    if (words_.at_end() || !is_letter(words_.word()[0])) fail(found(), "a label");
    unresolved_.push_back({first, words_.word(), line, on_begin});
    words_.next();
    end_statement();
  }

  void read_step(std::string_view verb, std::string_view label, std::uint32_t line) {
    Step step{.line = line};
    if (verb == "calc") {
      step.size = number("calc", UINT64_MAX);
    } else {
      step.kind = verb == "send" ? StepKind::send : StepKind::receive;
      step.size = number("bytes", most_bytes);
      take("b");
      take(verb == "send" ? "to" : "from");
      step.peer = number_or_any("rank", UINT32_MAX, any_rank, step.kind == StepKind::receive);
      if (step.peer != any_rank && step.peer >= out_.ranks.size()) {
        fail_at(line, std::string(verb) + (step.kind == StepKind::send ? " to " : " from ") +
                          std::to_string(step.peer) + ": accepted is 0 to " + std::to_string(out_.ranks.size() - 1) +
                          ", from num_ranks");
      }
    }
    read_options(step);
    end_statement();
    if (out_.steps.size() >= most_steps) fail_at(line, "more than " + std::to_string(most_steps) + " steps");
    const auto index = static_cast<std::uint32_t>(out_.steps.size());
    if (!label.empty() && !labels_.emplace(label, index).second) {
      fail_at(line, "the label " + std::string(label) + " is given twice");
    }
    out_.steps.push_back(step);
  }

  void read_options(Step& step) {
    bool has_tag = false;
    bool has_stream = false;
    bool has_nic = false;
    for (;;) {
      const std::string_view word = words_.word();
      bool* const has = word == "tag" && step.kind != StepKind::calc ? &has_tag
                        : word == "cpu"                              ? &has_stream
                        : word == "nic"                              ? &has_nic
                                                                     : nullptr;
      if (has == nullptr || *has) return;
      *has = true;
      words_.next();
      if (word == "tag") {
        step.tag = number_or_any("tag", any_tag - 1, any_tag, step.kind == StepKind::receive);
      } else if (word == "cpu") {
        step.stream = static_cast<std::uint8_t>(number("cpu", UINT8_MAX));
      } else {
        static_cast<void>(number("nic", UINT8_MAX));
      }
    }
  }

  void end_statement() {
    if (words_.ends_statement()) return words_.next();
    if (words_.word() != "}") fail(found(), "the end of the line");
  }

  std::uint32_t step_of(std::string_view label, std::uint32_t line) const {
    const auto found = labels_.find(label);
    if (found == labels_.end()) fail_at(line, "the label " + std::string(label) + " is nowhere in this rank");
    return found->second;
  }

  // The lists of followers of a rank's steps lie in the order of the steps.
  void connect(const Range& range) {
    dependences_.clear();
    for (const Unresolved& names : unresolved_) {
      const std::uint32_t follower = step_of(names.follower, names.line);
      dependences_.push_back({step_of(names.step, names.line), follower, names.on_begin});
      ++out_.steps[follower].waiting;
      ++out_.steps[dependences_.back().step].followers;
    }
    auto next = static_cast<std::uint32_t>(out_.followers.size());
    for (std::uint32_t step = range.first; step < range.last; ++step) {
      const std::uint32_t count = out_.steps[step].followers;
      out_.steps[step].followers = next;
      next += count;
    }
    out_.followers.resize(next);
    // Each begin moves on as its list is filled, and back again behind that.
    for (const Dependence& one : dependences_) {
      out_.followers[out_.steps[one.step].followers++] = {one.follower | (one.on_begin ? Follower::on_begin : 0)};
    }
    for (const Dependence& one : dependences_) --out_.steps[one.step].followers;
  }

  static constexpr std::uint64_t most_ranks = std::uint64_t{1} << 24;
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
  static constexpr std::size_t most_steps = (std::size_t{1} << 31) - 2;

  const std::string& file_name_;
  Words words_;
  Schedules out_;
  std::optional<std::uint32_t> rank_;
  std::unordered_map<std::string_view, std::uint32_t> labels_;
  std::vector<Unresolved> unresolved_;
  std::vector<Dependence> dependences_;
};

}  // namespace

Schedules parse(const std::string& file_name, std::string_view text) { return Parser(file_name, text).parse(); }

// Mapped, so that a long file takes no memory but the steps'.
Schedules read(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about{};
  if (file < 0 || ::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    if (file >= 0) ::close(file);
    throw SpecError("file = `" + path + "`: accepted is a file that can be read");
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const memory = size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) throw SpecError("file = `" + path + "`: there is nothing in it that can be read");
  struct Unmap {
    void* memory;
    std::size_t size;
    ~Unmap() { ::munmap(memory, size); }
  } const unmap{memory, size};
  return parse(path, {static_cast<const char*>(memory), size});
}

}  // namespace dryfly::motif::goal
