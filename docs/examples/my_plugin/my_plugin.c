/* A kernel as one shared library: cc -shared -fPIC -I... my_plugin.c -o libmine.so -lm, then
 * attest run --backend ./libmine.so. -DBUG makes its causal mask one key too long. */
#include <math.h>
#include <stdlib.h>

#include "attest_plugin.h"

static float bf16(const void* data, int64_t i) {
  const uint32_t bits = (uint32_t)((const uint16_t*)data)[i] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
static int64_t integer(const attest_tensor* t, int64_t i) {
  return t->dtype == ATTEST_INT64 ? ((const int64_t*)t->data)[i] : ((const int32_t*)t->data)[i];
}

int attest_plugin_abi(void) { return ATTEST_PLUGIN_ABI; }

const char* attest_plugin_describe(void) {
  return "{\"name\": \"mine.unified@cpu\", \"version\": \"1.0\", \"says\": \"the example plugin\","
         "\"capabilities\": {\"signature\": \"unified\", \"q_dtypes\": [\"bf16\"], \"kv_dtypes\": "
         "[\"bf16\"]},"
         "\"profile\": {\"p_dtype\": \"f32\", \"z_limit\": {\"normal\": 1.5, \"recall\": 1.5}}}";
}

int attest_plugin_supports(const attest_call* call, char* why, size_t why_size) {
  if (attest_tensor_named(call, "k")->strides[3] == 1) return ATTEST_OK;
  strncpy(why, "rows of K are not dense", why_size - 1);
  return ATTEST_NO;
}

int attest_plugin_run(const attest_call* call, char* why, size_t why_size) {
  const attest_tensor *q = attest_tensor_named(call, "q"), *k = attest_tensor_named(call, "k"),
                      *v = attest_tensor_named(call, "v"), *out = attest_tensor_named(call, "out"),
                      *starts = attest_tensor_named(call, "cu_seqlens_q"),
                      *lengths = attest_tensor_named(call, "seqused_k"),
                      *table = attest_tensor_named(call, "block_table");
  const float scale = (float)attest_scalar_named(call, "softmax_scale")->number;
  const int64_t page = k->shape[1], dim = q->shape[2], group = q->shape[1] / k->shape[2];
  (void)why, (void)why_size;
  for (int64_t i = 0; i < lengths->shape[0]; ++i) {
    const int64_t first = integer(starts, i * starts->strides[0]);
    const int64_t rows = integer(starts, (i + 1) * starts->strides[0]) - first;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t keys = integer(lengths, i * lengths->strides[0]) - rows + r + 1; /* causal */
#ifdef BUG
      keys += r + 1 < rows;
#endif
      for (int64_t h = 0; h < q->shape[1]; ++h) {
        float* sums = calloc((size_t)dim, sizeof(float));
        float top = -INFINITY, total = 0;
        for (int64_t t = 0; t < keys; ++t) { /* online softmax, one key at a time */
          const int64_t at = integer(table, i * table->strides[0] + t / page * table->strides[1]);
          const int64_t kat =
              at * k->strides[0] + t % page * k->strides[1] + h / group * k->strides[2];
          const int64_t vat =
              at * v->strides[0] + t % page * v->strides[1] + h / group * v->strides[2];
          float score = 0;
          for (int64_t d = 0; d < dim; ++d)
            score += bf16(q->data, (first + r) * q->strides[0] + h * q->strides[1] + d) *
                     bf16(k->data, kat + d);
          score *= scale;
          const float higher = fmaxf(top, score), keep = expf(top - higher),
                      weight = expf(score - higher);
          for (int64_t d = 0; d < dim; ++d)
            sums[d] = sums[d] * keep + weight * bf16(v->data, vat + d);
          total = total * keep + weight, top = higher;
        }
        for (int64_t d = 0; d < dim; ++d)
          ((uint16_t*)out->data)[(first + r) * out->strides[0] + h * out->strides[1] + d] =
              to_bf16(sums[d] / total);
        free(sums);
      }
    }
  }
  return ATTEST_OK;
}
