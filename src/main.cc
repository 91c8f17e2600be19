#include "cli/main_command.h"

int main(int argc, char** argv) { return reprise::RunMain(argc, argv); }
