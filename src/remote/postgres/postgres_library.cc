#include "remote/postgres/postgres_library.h"

namespace reprise {

Result<const PostgresLibrary*> PostgresLibrary::Load() {
  static const PostgresLibrary library;
  if (library.problem().empty()) return &library;
  return Fail(Reason::kNoPostgresLibrary,
              "the PostgreSQL client library (libpq 14 or newer; Debian's package libpq5) is not available",
              library.problem());
}

}  // namespace reprise
