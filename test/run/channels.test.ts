import { describe, expect, it, onTestFinished } from 'vitest';
import { type DropMessage, publish, subscribe } from '../../src/run/stats.ts';

const DROP: DropMessage = {
  endpoint: 'http://127.0.0.1:9',
  reason: 'closed',
  run: { id: '1', traceId: '1', name: 'a' },
};

describe('a channel', () => {
  it('tells a subscriber nothing of what it causes itself, and goes on afterwards', () => {
    let heard = 0;
    const stop = subscribe('runspan:run:dropped', () => {
      heard++;
      publish('runspan:run:dropped', () => DROP);
    });
    onTestFinished(stop);
    publish('runspan:run:dropped', () => DROP);
    publish('runspan:run:dropped', () => DROP);

    expect(heard).toBe(2);
  });
});
