// Everything, for first programs. The library's own headers never include it.
#pragma once
#include "depthbench/backend/cpu.hpp"
#include "depthbench/data/open_corpus.hpp"
#include "depthbench/data/split.hpp"
#include "depthbench/data/unigram.hpp"
#include "depthbench/op/add.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/residual/designs.hpp"
#include "depthbench/tape/gradcheck.hpp"
#include "depthbench/train/evaluate.hpp"
#include "depthbench/train/trainer.hpp"
