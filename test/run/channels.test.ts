import { channel } from 'node:diagnostics_channel';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type DropMessage, publish, subscribe } from '../../src/run/stats.ts';

const DROP: DropMessage = {
  endpoint: 'http://127.0.0.1:9',
  reason: 'closed',
  run: { id: '1', traceId: '1', name: 'a' },
};

describe('a channel', () => {
  it('is the one of that name in node:diagnostics_channel', () => {
    const messages: unknown[] = [];
    const listener = (message: unknown, name: string | symbol) => messages.push([name, message]);
    channel('runspan:run:dropped').subscribe(listener);
    onTestFinished(() => void channel('runspan:run:dropped').unsubscribe(listener));
    publish('runspan:run:dropped', () => DROP);

    expect(messages).toEqual([['runspan:run:dropped', DROP]]);
  });

  it('is heard until the listener is taken off', () => {
    const heard: string[] = [];
    const stop = subscribe('runspan:run:dropped', ({ reason }) => heard.push(reason));
    publish('runspan:run:dropped', () => DROP);
    stop();
    publish('runspan:run:dropped', () => DROP);

    expect(heard).toEqual(['closed']);
  });

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
