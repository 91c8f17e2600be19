#pragma once

// The version of these headers (https://semver.org). CMake reads the project's version from here.
#define REPRISE_VERSION_MAJOR 0
#define REPRISE_VERSION_MINOR 1
#define REPRISE_VERSION_PATCH 0
