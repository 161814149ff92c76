// bfloat16 products with float accumulation through oneDNN's matmul primitive (its C interface: the C++ one costs
// seconds to compile). Primitives are cached by the library; making one again costs microseconds.
#pragma once
#include <oneapi/dnnl/dnnl.h>

#include <cstdint>
#include <memory>

#include "depthbench/core/dtype.hpp"

namespace depthbench::onednn {

inline void check(dnnl_status_t status, const char* call) {
  if (status != dnnl_success) fail<error>("matmul in bf16: oneDNN's {} failed with status {}", call, int(status));
}
template <class T, dnnl_status_t (*destroy)(T)> struct Destroy {
  using pointer = T;
  void operator()(T x) const { destroy(x); }
};
using Memory = std::unique_ptr<dnnl_memory_t, Destroy<dnnl_memory_t, dnnl_memory_destroy>>;
using Attr = std::unique_ptr<dnnl_primitive_attr_t, Destroy<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>>;
using PostOps = std::unique_ptr<dnnl_post_ops_t, Destroy<dnnl_post_ops_t, dnnl_post_ops_destroy>>;
using Desc = std::unique_ptr<dnnl_primitive_desc_t, Destroy<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>>;
using Primitive = std::unique_ptr<dnnl_primitive_t, Destroy<dnnl_primitive_t, dnnl_primitive_destroy>>;

struct Engine {  // one a thread: streams are not shared
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  Engine() {
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine_create");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream_create");
  }
  ~Engine() {
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
  }
};

// A matrix of `rows` x `cols` as the product sees it; stored transposed or not, its rows `ld` elements apart.
inline dnnl_memory_desc_t matrix(std::int64_t rows, std::int64_t cols, dnnl_data_type_t type, bool transposed, std::int64_t ld) {
  dnnl_memory_desc_t d;
  const dnnl_dims_t extents = {rows, cols}, strides = {transposed ? 1 : ld, transposed ? ld : 1};
  check(dnnl_memory_desc_init_by_strides(&d, 2, extents, type, strides), "memory_desc_init");
  return d;
}

// C (m, n) = A B + beta C,  beta 0 or 1
inline void matmul(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const bfloat16* a, std::int64_t lda, const bfloat16* b,
                   std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  thread_local const Engine here;
  const auto da = matrix(m, k, dnnl_bf16, ta, lda), db = matrix(k, n, dnnl_bf16, tb, ldb), dc = matrix(m, n, dnnl_f32, false, ldc);
  dnnl_matmul_desc_t op;
  check(dnnl_matmul_desc_init(&op, &da, &db, nullptr, &dc), "matmul_desc_init");
  dnnl_primitive_attr_t attr_raw;
  check(dnnl_primitive_attr_create(&attr_raw), "attr_create");
  const Attr attr(attr_raw);
  if (beta != 0) {
    dnnl_post_ops_t ops_raw;
    check(dnnl_post_ops_create(&ops_raw), "post_ops_create");
    const PostOps ops(ops_raw);
    check(dnnl_post_ops_append_sum(ops.get(), beta), "post_ops_append_sum");
    check(dnnl_primitive_attr_set_post_ops(attr.get(), ops.get()), "set_post_ops");
  }
  dnnl_primitive_desc_t desc_raw;
  check(dnnl_primitive_desc_create(&desc_raw, &op, attr.get(), here.engine, nullptr), "primitive_desc_create");
  const Desc desc(desc_raw);
  dnnl_primitive_t primitive_raw;
  check(dnnl_primitive_create(&primitive_raw, desc.get()), "primitive_create");
  const Primitive primitive(primitive_raw);
  const auto memory = [&](const dnnl_memory_desc_t& d, const void* data) {
    dnnl_memory_t raw;
    check(dnnl_memory_create(&raw, &d, here.engine, const_cast<void*>(data)), "memory_create");
    return Memory(raw);
  };
  const Memory ma = memory(da, a), mb = memory(db, b), mc = memory(dc, c);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, ma.get()}, {DNNL_ARG_WEIGHTS, mb.get()}, {DNNL_ARG_DST, mc.get()}};
  check(dnnl_primitive_execute(primitive.get(), here.stream, 3, args), "primitive_execute");
  check(dnnl_stream_wait(here.stream), "stream_wait");
}

}  // namespace depthbench::onednn
