// SPDX-License-Identifier: MIT
// What a launcher around the tests has set, which must change none of them. Sets nothing.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace mgpu {

/// Of this process, and so of those that it starts.
inline void forget_launcher() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry; ++entry)
    for (const std::string_view prefix : {"OMPI_COMM_WORLD_", "PMI_", "SLURM_"})
      if (const std::string_view text(*entry); text.starts_with(prefix))
        names.emplace_back(text.substr(0, text.find('=')));
  for (const std::string& name : names) unsetenv(name.c_str());
}

// Before main, so that a test that plays the launcher keeps what it sets.
inline const bool launcher_is_forgotten = (forget_launcher(), true);

}  // namespace mgpu
