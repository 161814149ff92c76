#include "depthbench/train/checkpoint.hpp"

#include "depthbench/backend/cpu.hpp"
#include "tests/catch.hpp"
#include "tests/io/temp_folder.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// Parameters "a" (3, 4), "b" () and an optimizer that has made two steps.
struct State {
  Bench<float> b{{3, 4}, {}};
  Adamw<Cpu, float> adamw{b.parameters, {}};
  State() {
    for (int step = 0; step < 2; ++step) {
      for (int i = 0; i < 2; ++i) {
        const auto g = random_numbers<float>(std::size_t(b.at(i).numel()), std::uint64_t(7 + step));
        std::copy(g.begin(), g.end(), b.at(i).grad);
        b.at(i).has_grad = true;
      }
      adamw.step(0.1);
    }
  }
  std::vector<float> everything() {
    std::vector<float> all;
    for (const auto& p : b.parameters.list())
      for (const std::span<const float> s : {p.values(), std::span<const float>(adamw.first_moment(p)),
                                             std::span<const float>(adamw.second_moment(p))})
        all.insert(all.end(), s.begin(), s.end());
    return all;
  }
};
std::string load(const std::filesystem::path& path) {
  State s;
  return message_of([&] { load_checkpoint(path, s.b.parameters, &s.adamw); });
}
// A checkpoint written by hand, with something wrong.
template <class F> std::filesystem::path damaged(const TempFolder& folder, F change) {
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
  for (const auto* prefix : {"", "optim.exp_avg.", "optim.exp_avg_sq."}) {
    tensors[std::string(prefix) + "a"] = {{3, 4}, std::vector<float>(12, 1)};
    tensors[std::string(prefix) + "b"] = {{}, {1}};
  }
  CheckpointNotes notes{{"optim.step", "3"}};
  change(tensors, notes);
  SafeTensorsWriter out;
  for (const auto& [name, t] : tensors) out.add(name, t.first, std::span<const float>(t.second));
  for (const auto& [key, value] : notes) out.add_metadata(key, value);
  out.save(folder / "damaged.safetensors");
  return folder / "damaged.safetensors";
}

}  // namespace

TEST_CASE("checkpoint: what is written is read back, every bit", "[train]") {
  const TempFolder folder;
  State s, other;
  const auto before = s.everything();
  save_checkpoint(folder / "x.safetensors", s.b.parameters, &s.adamw, {{"who", "me"}});
  for (auto& p : other.b.parameters.list()) std::fill(p.value, p.value + p.numel(), 0.f);
  other.adamw.set_steps(0);
  const auto notes = load_checkpoint(folder / "x.safetensors", other.b.parameters, &other.adamw);
  CHECK(other.everything() == before);
  CHECK(other.adamw.steps() == 2);
  CHECK(notes.at("who") == "me");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) ==
        1);  // no temporary file stays
}

TEST_CASE("checkpoint: weights alone", "[train]") {
  const TempFolder folder;
  State s, other;
  save_checkpoint<Cpu, float>(folder / "x.safetensors", s.b.parameters, nullptr, {});
  const SafeTensors file(folder / "x.safetensors");
  CHECK(file.names().size() == 2);
  CHECK(file.at("a").shape == std::vector<std::int64_t>{3, 4});
  CHECK(file.at("b").shape.empty());
  std::fill(other.b.at(0).value, other.b.at(0).value + 12, 0.f);
  load_checkpoint<Cpu, float>(folder / "x.safetensors", other.b.parameters, nullptr);
  CHECK(other.b.values(0) == s.b.values(0));
  CHECK(load(folder / "x.safetensors") ==
        fmt::format("checkpoint {}: has no tensor optim.exp_avg.a", (folder / "x.safetensors").string()));
}

TEST_CASE("checkpoint: double and bfloat16 files load into float", "[train]") {
  const TempFolder folder;
  State s;
  SafeTensorsWriter out;
  const std::vector<double> a(12, 0.5), b(1, 2);
  out.add("a", {3, 4}, std::span<const double>(a));
  out.add("b", {}, std::span<const double>(b));
  out.save(folder / "x.safetensors");
  load_checkpoint<Cpu, float>(folder / "x.safetensors", s.b.parameters, nullptr);
  CHECK(s.b.values(0) == std::vector<float>(12, 0.5f));
}

TEST_CASE("checkpoint: each lie has its sentence", "[train]") {
  const TempFolder folder;
  const std::string at = "checkpoint " + (folder / "damaged.safetensors").string() + ": ",
                    name = (folder / "damaged.safetensors").string();
  CHECK(load(damaged(folder, [](auto&, auto&) {})) == "(nothing was thrown)");
  CHECK(load(damaged(folder, [](auto& t, auto&) { t.erase("b"); })) == at + "has no tensor b");
  CHECK(load(damaged(folder, [](auto& t, auto&) { t.erase("optim.exp_avg_sq.a"); })) ==
        at + "has no tensor optim.exp_avg_sq.a");
  CHECK(load(damaged(folder, [](auto& t, auto&) {
          t["a"].first = {4, 3};
        })) == at + "a has another shape (12 elements) than the model needs: (3, 4)");
  CHECK(load(damaged(folder, [](auto& t, auto&) {
          t["c"] = {{1}, {1}};
        })) == at + "has a tensor c that this model does not have");
  CHECK(load(damaged(folder, [](auto& t, auto&) { t["a"].second[5] = NAN; })) ==
        at + "a has nan at element 5");
  CHECK(load(damaged(folder, [](auto& t, auto&) { t["optim.exp_avg.a"].second[11] = -INFINITY; })) ==
        at + "optim.exp_avg.a has -inf at element 11");
  CHECK(load(damaged(folder, [](auto&, auto& n) { n.clear(); })) ==
        name + ": has no optim.step in its metadata, needs it to resume");
  for (const auto* bad : {"", "-1", "1.5", "3x", "99999999999999999999"})
    CHECK(
        load(damaged(folder, [&](auto&, auto& n) { n["optim.step"] = bad; })) ==
        fmt::format("{}: optim.step is '{}' in its metadata, needs a whole number of 0 or more", name, bad));
}

TEST_CASE("checkpoint: a file cut short anywhere is refused", "[train]") {
  const TempFolder folder;
  State s;
  save_checkpoint(folder / "x.safetensors", s.b.parameters, &s.adamw, {});
  const std::string whole = read_whole(folder / "x.safetensors");
  int accepted = 0;
  for (std::size_t n = 0; n < whole.size(); n += 7)
    accepted +=
        load(folder.write("cut.safetensors", std::string_view(whole).substr(0, n))) == "(nothing was thrown)";
  CHECK(accepted == 0);
  CHECK(load(folder.write("cut.safetensors", whole)) == "(nothing was thrown)");
  CHECK_THROWS_AS(load_checkpoint(folder / "missing", s.b.parameters, &s.adamw), file_error);
}
