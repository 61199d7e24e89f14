// With DRYFLY_LOG=1 in the environment, says on stderr what the provider has refused and which errors it met.
#pragma once

namespace dryfly::provider {

bool log_enabled();
[[gnu::format(printf, 1, 2)]] void log(const char* format, ...);

}  // namespace dryfly::provider
