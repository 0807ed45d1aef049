// einsum on small integers in f32, where every order of summation is exact.
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

struct Case {
  const char *equation;
  std::vector<std::vector<int64_t>> dims;
  std::vector<int64_t> resultDims;
  std::vector<float> result; // operands hold 1, 2, 3 ... each
};

TEST(Einsum, Values) {
  for (const Case &c : std::vector<Case>{
           {"ij,jk->ik", {{2, 2}, {2, 2}}, {2, 2}, {7, 10, 15, 22}},
           {"ij->ji", {{2, 3}}, {3, 2}, {1, 4, 2, 5, 3, 6}},
           {"ii->i", {{2, 2}}, {2}, {1, 4}},
           {"ii", {{2, 2}}, {}, {5}},
           {"i,i", {{3}, {3}}, {}, {14}},
           {"i,j->ij", {{2}, {2}}, {2, 2}, {1, 2, 2, 4}},
           {"...ij,...jk->...ik", {{2, 1, 2}, {2, 2, 1}}, {2, 1, 1}, {5, 25}},
           {" b ... -> ... b ", {{2, 2}}, {2, 2}, {1, 3, 2, 4}},
           {"ij,jk,kl->il", {{1, 2}, {2, 1}, {1, 2}}, {1, 2}, {5, 10}},
           {"bij,bj->bi", {{1, 2, 2}, {2, 2}}, {2, 2}, {5, 11, 11, 25}},
       }) {
    std::vector<Tensor> in;
    for (const std::vector<int64_t> &dims : c.dims) {
      float next = 0;
      in.push_back(filled<float>(DType::F32, dims, [&] { return ++next; }));
    }
    AttrList attrs;
    attrs.set("equation", c.equation);
    for (const Kernel *row : rowsOf("einsum")) {
      std::vector<Tensor> y = runRow(*row, in, attrs);
      ASSERT_EQ(y.size(), 1u) << c.equation;
      EXPECT_EQ(y[0].dims, c.resultDims) << c.equation;
      for (size_t i = 0; i < c.result.size(); ++i)
        EXPECT_EQ(y[0].as<float>()[i], c.result[i]) << c.equation << " element " << i;
    }
  }
}

TEST(Einsum, RefusesBadEquations) {
  for (const char *equation : {"ij,jk", "ijk->i", "ij->iij", "ij->k", "i..j->i", "i1->i", "->"}) {
    std::vector<TensorInfo> in = {TensorInfo::make(DType::F32, {2, 2})};
    AttrList attrs;
    attrs.set("equation", equation);
    InferContext ctx;
    ctx.in = in;
    ctx.attrs = attrs.view();
    ctx.out.resize(1);
    EXPECT_EQ(int(findOp("einsum")->infer(ctx)), int(InferStatus::Error)) << equation;
  }
}

} // namespace
} // namespace dspark
