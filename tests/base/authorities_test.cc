#include "base/authorities.h"

#include "support/test.h"

namespace reprise::test::authorities_test {

TEST_CASE("AuthoritiesFile: the file that the environment names, otherwise the system's", "[net]") {
  const auto naming = [](const char* value) {
    return [value](const std::string& name) {
      return name == "SSL_CERT_FILE" && value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    };
  };
  CHECK(AuthoritiesFile(naming("/nowhere/own.pem")) == "/nowhere/own.pem");
  const std::string system = AuthoritiesFile(naming(nullptr));
  CHECK(AuthoritiesFile(naming("")) == system);
  CHECK((system.empty() || system.starts_with("/etc/")));
}

}  // namespace reprise::test::authorities_test
