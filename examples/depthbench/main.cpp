#include "app.hpp"

int main(int argc, char** argv) { return depthbench::app::run(argc, argv); }
