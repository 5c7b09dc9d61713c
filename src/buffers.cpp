// SPDX-License-Identifier: MIT
#include "buffers.hpp"

#include <algorithm>

namespace mgpu {

void Buffers::trim(std::span<const BufferSpec> specs) {
  std::vector<BufferSpec> wanted(specs.begin(), specs.end());
  std::erase_if(kept_, [&](const auto& entry) {
    const auto found = std::ranges::find(wanted, entry.first);
    if (found == wanted.end()) return true;
    wanted.erase(found);
    return false;
  });
}

Bytes Buffers::kept(const std::function<bool(const Site&)>& at,
                    std::span<const BufferSpec> specs) const {
  std::vector<BufferSpec> wanted(specs.begin(), specs.end());
  Bytes sum = 0;
  for (const auto& [spec, buffer] : kept_) {
    const auto found = std::ranges::find(wanted, spec);
    if (!at(spec.site) || found == wanted.end()) continue;
    wanted.erase(found);
    sum += spec.bytes;
  }
  return sum;
}

void Buffers::keep_only(const std::function<bool(const BufferSpec&)>& wanted) {
  std::erase_if(kept_, [&](const auto& entry) { return !wanted(entry.first); });
}

std::unique_ptr<Buffer> Buffers::take(const BufferSpec& spec) {
  const auto found = std::ranges::find(kept_, spec, [](const auto& entry) { return entry.first; });
  if (found == kept_.end()) return backend_.allocate(spec);
  auto buffer = std::move(found->second);
  kept_.erase(found);
  return buffer;
}

void Buffers::give(const BufferSpec& spec, std::unique_ptr<Buffer> buffer) {
  if (spec.kind != MemoryKind::managed) kept_.emplace_back(spec, std::move(buffer));
}

}  // namespace mgpu
