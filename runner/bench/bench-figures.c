/* SPDX-License-Identifier: Apache-2.0 */
/* The median of a few measurements, with its confidence interval.  Nothing is assumed about their
 * distribution. */
#include <stdlib.h>

#include "runner/bench/bench.h"

static int
compare_figures(const void *a, const void *b)
{
  double x = *(const double *)a;
  double y = *(const double *)b;

  return x < y ? -1 : x > y;
}

/* How many values may be left out at each end so that the interval still contains the median with a
 * probability of 95 %: the true median is below the k-th of n values with the probability of fewer
 * than k heads in n tosses. */
static size_t
left_out(size_t n)
{
  double chance = 1, sum;
  size_t k = 0;

  for (size_t i = 0; i < n; i++)
    chance /= 2;
  sum = chance;
  while (k < n / 2 && sum <= 0.025) {
    k++;
    chance = chance * (double)(n - k + 1) / (double)k;
    sum += chance;
  }
  return k > 0 ? k - 1 : 0;
}

struct figures
bench_figures(double *values, size_t n)
{
  if (n == 0)
    return (struct figures){0, 0, 0};
  qsort(values, n, sizeof(*values), compare_figures);
  size_t k = left_out(n);
  double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return (struct figures){median, values[k], values[n - 1 - k]};
}
