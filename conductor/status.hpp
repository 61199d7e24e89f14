// Lines for whoever started the conductor: `ready`, `attached RANK PID`, `started`, `reached PICOSECONDS`, `ended`,
// `deadlock`, ...
#pragma once

#include <unistd.h>

#include <string>

namespace dryfly {

class StatusLine {
 public:
  explicit StatusLine(int descriptor) : descriptor_(descriptor) {}

  // A line is one write, so that lines never mix. A reader that is gone is no error: the life line tells.
  void say(std::string text) const {
    if (descriptor_ < 0) return;
    text += '\n';
    [[maybe_unused]] const auto written = ::write(descriptor_, text.data(), text.size());
  }

 private:
  int descriptor_;
};

}  // namespace dryfly
