#include "domain/audit_reading.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/try.h"

namespace reprise {

Result<void> ReadAuditLines(const AuditLog& log, const std::function<bool(const Json& line)>& use) {
  constexpr std::size_t kPage = 1000;
  std::uint64_t after = 0;
  for (;;) {
    const auto page = TRY(log.Read(after, kPage));
    for (const std::string& text : page.lines) {
      const auto line = ParseJson(text);
      if (line && !use(*line)) return {};
    }
    if (!page.next) return {};
    after = *page.next;
  }
}

}  // namespace reprise
