#include "backends/hip/inspect/address_width.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace attest::hip {
namespace {

constexpr long k_field = 48;
constexpr long table_field = 168;

/// A kernel that loads a page id as %page (i32) and whose body computes %offset (i64) from it or
/// not; K is then loaded at that element.
std::string kernel(const std::string& body) {
  return R"(define amdgpu_kernel void @paged(ptr addrspace(4) nocapture byref(%"struct.A") align 8 %0) #0 {
  %kf = getelementptr inbounds i8, ptr addrspace(4) %0, i64 48
  %k = load ptr, ptr addrspace(4) %kf, align 8
  %sf = getelementptr inbounds i8, ptr addrspace(4) %0, i64 56
  %stride = load i64, ptr addrspace(4) %sf, align 8
  %stride32 = trunc i64 %stride to i32
  %tf = getelementptr inbounds i8, ptr addrspace(4) %0, i64 168
  %table = load ptr, ptr addrspace(4) %tf, align 8
  %cell = getelementptr inbounds i32, ptr %table, i64 3
  %page = load i32, ptr %cell, align 4, !tbaa !7
)" + body +
         R"(
  %at = getelementptr inbounds i16, ptr %k, i64 %offset
  %key = load i16, ptr %at, align 2, !dbg !20
  ret void
}
!20 = !DILocation(line: 38, column: 5, scope: !9)
)";
}

/// The width of the one K load.
std::string width_of(const std::string& body) {
  std::istringstream text(kernel(body));
  const std::vector<LlvmFunction> functions = read_llvm(text);
  EXPECT_EQ(functions.size(), 1U);
  const std::vector<KvLoad> loads = kv_loads(functions.at(0), {{k_field}, {table_field}});
  EXPECT_EQ(loads.size(), 1U);
  EXPECT_EQ(loads.at(0).value, "%key");
  EXPECT_EQ(loads.at(0).line, 38);
  return std::string(name(loads.at(0).width));
}

TEST(AddressWidth, AProductIn64BitsIsWide) {
  EXPECT_EQ(width_of("  %wide = sext i32 %page to i64\n"
                     "  %offset = mul nsw i64 %wide, %stride"),
            "64-bit");
}

TEST(AddressWidth, AProductIn32BitsIsNarrow) {
  for (const char* product : {"mul nsw i32 %page, %stride32", "shl nuw nsw i32 %page, 11"}) {
    for (const char* widening : {"sext", "zext nneg"}) {
      EXPECT_EQ(width_of("  %p = " + std::string(product) + "\n  %q = add nsw i32 %p, 5\n" +
                         "  %offset = " + widening + " i32 %q to i64"),
                "32-bit");
    }
  }
}

TEST(AddressWidth, AWideProductCutTo32BitsIsNarrow) {
  const std::string product = "  %wide = sext i32 %page to i64\n  %p = mul i64 %wide, %stride\n";
  EXPECT_EQ(width_of(product + "  %c = trunc i64 %p to i32\n  %d = sdiv i32 %c, 2\n"
                               "  %offset = sext i32 %d to i64"),
            "32-bit");
  EXPECT_EQ(width_of(product + "  %offset = and i64 %p, 4294967295"), "32-bit");
  EXPECT_EQ(width_of(product + "  %c = shl i64 %p, 32\n  %offset = ashr exact i64 %c, 32"),
            "32-bit");
}

TEST(AddressWidth, APageIdCutBeforeAWideProductStaysWide) {
  EXPECT_EQ(width_of("  %a = zext i32 %page to i64\n  %b = trunc i64 %a to i32\n"
                     "  %c = sext i32 %b to i64\n  %offset = mul i64 %c, %stride"),
            "64-bit");
}

TEST(AddressWidth, NarrowProductsThatThePageIdHasNoPartInDoNotCount) {
  EXPECT_EQ(width_of("  %slot = call i32 @llvm.amdgcn.workitem.id.x()\n"
                     "  %s = mul i32 %slot, %stride32\n  %sw = sext i32 %s to i64\n"
                     "  %wide = sext i32 %page to i64\n  %p = mul i64 %wide, %stride\n"
                     "  %offset = add i64 %p, %sw"),
            "64-bit");
}

TEST(AddressWidth, OffsetsAreFollowedThroughSharedMemory) {
  const std::string through =
      "  store i64 %made, ptr addrspace(3) getelementptr inbounds (i8, ptr addrspace(3) @shared, "
      "i64 16), align 8\n"
      "  %there = getelementptr inbounds i64, ptr addrspacecast (ptr addrspace(3) @shared to ptr), "
      "i64 2\n"
      "  %offset = load i64, ptr %there, align 8";
  EXPECT_EQ(
      width_of("  %wide = sext i32 %page to i64\n  %made = mul i64 %wide, %stride\n" + through),
      "64-bit");
  EXPECT_EQ(width_of("  %p = mul i32 %page, %stride32\n  %made = sext i32 %p to i64\n" + through),
            "32-bit");
}

TEST(AddressWidth, LoopsAndSelectsAreFollowed) {
  EXPECT_EQ(width_of("  %next = phi i64 [ 0, %entry ], [ %offset, %loop ]\n"
                     "  %wide = sext i32 %page to i64\n  %p = mul i64 %wide, %stride\n"
                     "  %s = select i1 %c, i64 %p, i64 %next\n  %offset = add i64 %s, 1"),
            "64-bit");
  EXPECT_EQ(width_of("  %next = phi i32 [ 0, %entry ], [ %p, %loop ]\n"
                     "  %p = mul i32 %page, %stride32\n  %offset = sext i32 %next to i64"),
            "32-bit");
}

TEST(AddressWidth, ALoadWithoutAWayToTheTableIsUnknown) {
  EXPECT_EQ(width_of("  %offset = mul i64 %stride, 3"), "unknown");
  EXPECT_EQ(width_of("  %p = call i64 @somewhere(i32 %page)\n  %offset = mul i64 %p, 3"),
            "unknown");
}

TEST(AddressWidth, OneNarrowPathMakesTheLoadNarrow) {
  EXPECT_EQ(width_of("  %wide = sext i32 %page to i64\n  %a = mul i64 %wide, %stride\n"
                     "  %n = mul i32 %page, %stride32\n  %b = sext i32 %n to i64\n"
                     "  %offset = select i1 %c, i64 %a, i64 %b"),
            "32-bit");
}

TEST(LlvmText, AnInstructionIsReadWithItsOperands) {
  std::string name;
  const Instruction phi =
      read_instruction("  %5 = phi i64 [ %3, %2 ], [ 7, %label.x ], !dbg !4", name);
  EXPECT_EQ(name, "%5");
  EXPECT_EQ(phi.opcode, "phi");
  EXPECT_EQ(phi.width, 64);
  EXPECT_THAT(phi.operands, testing::ElementsAre("%3"));
  const Instruction vector = read_instruction("  %x = mul nuw nsw <2 x i32> %a, %b", name);
  EXPECT_EQ(vector.width, 32);
  EXPECT_THAT(vector.operands, testing::ElementsAre("%a", "%b"));
  const Instruction call =
      read_instruction("  %y = tail call i64 @llvm.smin.i64(i64 %a, i64 9), !dbg !3", name);
  EXPECT_EQ(call.callee, "@llvm.smin.i64");
  EXPECT_THAT(call.operands, testing::ElementsAre("%a"));
  EXPECT_THAT(call.literals, testing::ElementsAre("9"));
  const Instruction store =
      read_instruction("  store i64 %322, ptr %324, align 8, !tbaa !13", name);
  EXPECT_TRUE(name.empty());
  EXPECT_EQ(store.width, 64);
  EXPECT_THAT(store.operands, testing::ElementsAre("%322", "%324"));
  EXPECT_TRUE(read_instruction("17:                ; preds = %2", name).opcode.empty());
}

}  // namespace
}  // namespace attest::hip
