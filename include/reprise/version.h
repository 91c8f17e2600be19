#pragma once

// The version of these headers (https://semver.org). CMake reads the project's version from here.
#define REPRISE_VERSION_MAJOR 0
#define REPRISE_VERSION_MINOR 1
#define REPRISE_VERSION_PATCH 0

// The same as text: "0.1.0".
#define REPRISE_VERSION                  \
  REPRISE_TEXT_OF(REPRISE_VERSION_MAJOR) \
  "." REPRISE_TEXT_OF(REPRISE_VERSION_MINOR) "." REPRISE_TEXT_OF(REPRISE_VERSION_PATCH)
#define REPRISE_TEXT_OF(number) REPRISE_TEXT_OF_VALUE(number)
#define REPRISE_TEXT_OF_VALUE(number) #number
