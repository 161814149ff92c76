// The held-out loss of a model: both means of data/validation.hpp.
#pragma once
#include <functional>

#include "depthbench/data/validation.hpp"
#include "depthbench/model/transformer.hpp"

namespace depthbench {

// rows: instances of one forward pass.   progress(done, of): called after each.
template <class Device, class R>
ValidationLoss evaluate(Transformer<Device, R>& model, Tape<Device, R>& tape, const ValidationSet& set, std::int64_t rows,
                        const std::function<void(std::uint64_t, std::uint64_t)>& progress = {}) {
  ValidationLoss total;
  std::uint64_t done = 0;
  for (const ValidationBatch& batch : set.batches(rows)) {
    double nll = 0;
    tape.no_grad([&] {
      const auto loss = model.loss(tape, batch.tokens, batch.targets, int(batch.rows), 1.0);
      nll = double(tape.device().read(loss.value()));
      return std::vector<Var<Device, R>>{};
    });
    tape.clear();
    total.add(batch, nll);
    done += std::uint64_t(batch.rows);
    if (progress) progress(done, set.instances());
  }
  return total;
}

}  // namespace depthbench
