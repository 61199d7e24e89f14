#include "nics.hpp"

#include <cstdlib>
#include <string>

#include "bad_input.hpp"

namespace dryfly::hpl {
namespace {

constexpr const char* kSetting = "MPIR_CVAR_CH4_OFI_MAX_NICS";
constexpr const char* kAll = "-1";

}  // namespace

void ask_for_nics(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word.rfind("--swap-nic", 0) == 0 || word.rfind("--bcast-nic", 0) == 0) setenv(kSetting, kAll, 0);
  }
}

void check_nics(const NicHints& asked) {
  const char* given = std::getenv(kSetting);
  if ((asked.row.empty() && asked.column.empty()) || given == nullptr || given == std::string(kAll)) return;
  throw BadInput(std::string(kSetting) + "=" + given + ": with --swap-nic or --bcast-nic accepted is " + kAll +
                 ", all NICs of the node, or nothing");
}

}  // namespace dryfly::hpl
