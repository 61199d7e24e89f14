// Reads HPL.dat: 31 lines of fixed meaning, each with its values first and a remark behind them.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

#include "options.hpp"

namespace dryfly::hpl {
namespace {

class Lines {
 public:
  Lines(std::string name, const std::string& text) : name_(std::move(name)) {
    std::stringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  }

  // `count` whole numbers of a line; `what` is what HPL calls it.
  std::vector<std::int64_t> numbers(std::size_t line, const std::string& what, std::int64_t count, std::int64_t least,
                                    std::int64_t most) const {
    std::stringstream words(text(line, what));
    std::vector<std::int64_t> values;
    const std::string field = where(line, what);
    for (std::string word; static_cast<std::int64_t>(values.size()) < count && words >> word;) {
      if (std::isalpha(static_cast<unsigned char>(word.front())) != 0) break;  // the remark
      values.push_back(parse_count(field, word, least, most));
    }
    if (static_cast<std::int64_t>(values.size()) < count)
      throw BadInput(field + " has " + std::to_string(values.size()) + " values, and " + std::to_string(count) +
                     " are announced");
    return values;
  }

  std::int64_t number(std::size_t line, const std::string& what, std::int64_t least, std::int64_t most) const {
    return numbers(line, what, 1, least, most).front();
  }

  // A line with how many there are, and the line with them.
  std::vector<std::int64_t> list(std::size_t line, const std::string& what, std::int64_t least,
                                 std::int64_t most) const {
    constexpr std::int64_t kMost = 1000;
    return numbers(line + 1, what, number(line, "# of " + what, 1, kMost), least, most);
  }

  std::string word(std::size_t line, const std::string& what) const {
    std::stringstream words(text(line, what));
    std::string first;
    words >> first;
    return first;
  }

  std::string where(std::size_t line, const std::string& what) const {
    return name_ + " line " + std::to_string(line) + " (" + what + "):";
  }

 private:
  const std::string& text(std::size_t line, const std::string& what) const {
    if (line > lines_.size())
      throw BadInput(name_ + " has " + std::to_string(lines_.size()) + " lines; line " + std::to_string(line) + " (" +
                     what + ") is missing");
    return lines_[line - 1];
  }

  std::string name_;
  std::vector<std::string> lines_;
};

template <class Value, class Convert>
std::vector<Value> converted(const std::vector<std::int64_t>& numbers, Convert convert) {
  std::vector<Value> values;
  for (const std::int64_t each : numbers) values.push_back(convert(each));
  return values;
}

// What an HPL.dat says itself.
constexpr const char* kCovered[] = {"-N",     "--nb",    "--grid",  "--pmap",  "--pfact",    "--nbmin",
                                    "--ndiv", "--rfact", "--bcast", "--depth", "--swap",     "--swap-threshold",
                                    "--l1",   "--u",     "--equil", "--align", "--threshold"};

double threshold_of(const Lines& lines) {
  std::stringstream word(lines.word(13, "threshold"));
  double value = 0;
  if (!(word >> value) || !word.eof())
    throw BadInput(lines.where(13, "threshold") + " " + word.str() + ": accepted is a number");
  return value;
}

}  // namespace

void refuse_flags_beside_data_file(const std::string& name, const Options& options) {
  for (const std::string& flag : options.given)
    if (std::find(std::begin(kCovered), std::end(kCovered), flag) != std::end(kCovered))
      throw BadInput(flag + " with " + name + ": the file says it itself; give one of the two" +
                     (options.data_file.empty() ? " (with -N the file is not read)" : ""));
}

void parse_data_file(const std::string& name, const std::string& text, Options& options) {
  const Lines lines(name, text);
  const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
  const auto variant = [](std::int64_t value) { return static_cast<Variant>(value); };
  constexpr int kStandardOutput = 6, kStandardError = 7;
  const std::int64_t device = lines.number(4, "device out", 0, 1 << 30);
  options.output = device == kStandardOutput ? "" : device == kStandardError ? "-" : lines.word(3, "output file name");
  options.orders = lines.list(5, "Ns", 1, kOrderMost);
  options.blocks = lines.list(7, "NBs", 1, kBlockMost);
  options.row_major = lines.number(9, "PMAP", 0, 1) == 0;
  const std::vector<std::int64_t> rows = lines.list(10, "Ps", 1, 1 << 24);
  const std::vector<std::int64_t> columns = lines.numbers(12, "Qs", static_cast<std::int64_t>(rows.size()), 1, 1 << 24);
  options.grids.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) options.grids.emplace_back(whole(rows[i]), whole(columns[i]));
  options.threshold = threshold_of(lines);
  options.leaf = converted<Variant>(lines.list(14, "PFACTs", 0, 2), variant);
  options.leaf_columns = converted<int>(lines.list(16, "NBMINs", 1, kBlockMost), whole);
  options.pieces = converted<int>(lines.list(18, "NDIVs", 2, kBlockMost), whole);
  options.recursion = converted<Variant>(lines.list(20, "RFACTs", 0, 2), variant);
  options.broadcasts = converted<Broadcast>(lines.list(22, "BCASTs", 0, kBroadcasts - 1),
                                            [](std::int64_t value) { return static_cast<Broadcast>(value); });
  options.depths = converted<int>(lines.list(24, "DEPTHs", 0, kDepthMost), whole);
  options.swap.kind = static_cast<SwapKind>(lines.number(26, "SWAP", 0, 2));
  options.swap.threshold = lines.number(27, "swapping threshold", 0, kOrderMost);
  options.transposed_top = lines.number(28, "L1", 0, 1) == 0;
  options.swap.transposed_u = lines.number(29, "U", 0, 1) == 0;
  options.swap.equal_pieces = lines.number(30, "equilibration", 0, 1) == 1;
  options.alignment = lines.number(31, "memory alignment", 1, 256);
}

}  // namespace dryfly::hpl
