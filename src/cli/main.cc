#include "cli/commands.h"

int main(int argc, char** argv) { return spillway::cli::spillway_main({argv + 1, argv + argc}); }
