import { expect, test } from 'vitest';
import { DELAY_MAX_MS, defaultLimits } from '../../src/base/limits.ts';

test('the defaults are those that are documented', () => {
  expect(defaultLimits).toEqual({
    lingerMs: 250,
    batchRuns: 100,
    batchBytes: 20_971_520,
    requestsInFlight: 4,
    queueRuns: 100_000,
    queueBytes: 67_108_864,
    payloadDepth: 64,
    payloadWidth: 10_000,
    payloadNodes: 100_000,
    payloadBytes: 10_485_760,
    openRuns: 10_000,
    openRunAgeMs: 3_600_000,
    connectTimeoutMs: 5_000,
    requestTimeoutMs: 30_000,
    retryDelayMs: 500,
    retryDelayMaxMs: 30_000,
    ageMs: 900_000,
    simpleInFlight: 4,
    simpleRequestsPerSecond: 50,
    exitFlushMs: 2_000,
  });
});

test('the longest delay is the last that setTimeout takes as it is', () => {
  expect(DELAY_MAX_MS).toBe(2_147_483_647);
});
