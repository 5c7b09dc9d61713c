// SPDX-License-Identifier: MIT
#include "report/comparison.hpp"
#include "report/markdown_table.hpp"

namespace mgpu {

std::string comparison_markdown(const Comparison& comparison, BackendKind backend) {
  return "**mgpu compare**: " + markdown_table(comparison_table(comparison, backend));
}

}  // namespace mgpu
