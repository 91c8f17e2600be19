#include "reprise/timestamp.h"
#include "store/tenant_files.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::daily_usage_file_test {
namespace {

void Write(MemoryFileSystem& disk, const std::string& text) {
  static_cast<void>(disk.RemoveFile("/d/.used_today"));
  auto file = disk.CreateFile("/d/.used_today");
  REQUIRE(file);
  REQUIRE((*file)->Append(text));
  REQUIRE((*file)->Close());
}

}  // namespace

TEST_CASE("DailyUsageFile: tokens added today are there after a restart", "[store]") {
  MemoryFileSystem disk;
  REQUIRE(disk.CreateDirectory("/d"));
  {
    DailyUsageFile usage(disk, "/d/.used_today");
    CHECK(usage.Today() == 0);
    REQUIRE(usage.Add(5));
    REQUIRE(usage.Add(7));
    CHECK(usage.Today() == 12);
  }
  CHECK(DailyUsageFile(disk, "/d/.used_today").Today() == 12);
}

TEST_CASE("DailyUsageFile: another day's tokens and an unreadable file count for nothing", "[store]") {
  MemoryFileSystem disk;
  REQUIRE(disk.CreateDirectory("/d"));
  const std::string yesterday = FormatTimestamp(Now() - std::chrono::hours(25));
  for (const std::string& text : {R"({"day":")" + yesterday + R"(","tokens":9})", std::string("{}"), std::string(),
                                  R"({"day":")" + FormatTimestamp(Now()) + R"(","tokens":-9})"}) {
    Write(disk, text);
    DailyUsageFile usage(disk, "/d/.used_today");
    CHECK(usage.Today() == 0);
    REQUIRE(usage.Add(3));
    CHECK(usage.Today() == 3);
  }
}

}  // namespace reprise::daily_usage_file_test
