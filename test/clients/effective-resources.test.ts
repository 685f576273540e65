import { expect, it } from 'vitest';
import { effectiveResources } from '../../src/clients/effective-resources.ts';

it('gives each field the default that the limits tell', () => {
  expect(
    effectiveResources({
      min_scale: 1,
      max_scale: 3,
      cpu: 1.5,
      memory_mb: 1_024,
      redis_cpu: 0.5,
      redis_memory_mb: 512,
      core_cpu: 0.2,
      core_memory_mb: 256,
      db_cpu: 2,
      db_memory_mb: 4_096,
    }),
  ).toEqual({
    min_scale: 1,
    max_scale: 3,
    cpu: 1.5,
    cpu_limit: 3,
    memory_mb: 1_024,
    memory_limit_mb: 2_048,
    queue_min_scale: 1,
    queue_max_scale: 3,
    queue_cpu: 1.5,
    queue_cpu_limit: 3,
    queue_memory_mb: 1_024,
    queue_memory_limit_mb: 2_048,
    redis_cpu: 0.5,
    redis_cpu_limit: 1,
    redis_memory_mb: 512,
    // Not doubled.
    redis_memory_limit_mb: 512,
    core_cpu: 0.2,
    core_cpu_limit: 0.4,
    core_memory_mb: 256,
    core_memory_limit_mb: 512,
    db_cpu: 2,
    db_cpu_limit: 4,
    db_memory_mb: 4_096,
    db_memory_limit_mb: 8_192,
  });
});

it('keeps what is given, and goes by it', () => {
  const { queue_cpu_limit, queue_memory_limit_mb, cpu_limit } = effectiveResources({
    cpu: 1,
    cpu_limit: 1.2,
    queue_cpu: 3,
    memory_mb: 100,
    queue_memory_mb: 300,
  });
  expect({ queue_cpu_limit, queue_memory_limit_mb, cpu_limit }).toEqual({
    queue_cpu_limit: 6,
    queue_memory_limit_mb: 600,
    cpu_limit: 1.2,
  });
});

it.each([
  [0.14, 0.1],
  [0.15, 0.2],
  [0.16, 0.2],
  [7.96, 8],
  [8, 8],
])('rounds %d cores to %d', (cpu, rounded) => {
  expect(effectiveResources({ cpu })).toMatchObject({ cpu: rounded, cpu_limit: rounded * 2, queue_cpu: rounded });
});

it('knows nothing of what nothing is given for, null among it', () => {
  expect(effectiveResources({})).toEqual({});
  expect(effectiveResources({ cpu: 1, cpu_limit: null })).toMatchObject({ cpu_limit: 2 });
  const given = { labels: { team: 'search' }, volumes: [{ name: 'data' }] };
  expect(effectiveResources(given)).toEqual(given);
});

it.each([undefined, null, 'text', []])('%j is no object', (value) => {
  expect(() => effectiveResources(value as object)).toThrow(
    expect.objectContaining({
      code: 'RUNSPAN_INVALID_REQUEST',
      message: 'effectiveResources: spec: Expected an object',
    }),
  );
});
