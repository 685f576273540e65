import { describe, expect, test, vi } from 'vitest';
import { makeSink } from './memory-sink.ts';

/** The module as it is when the process has just started. */
async function freshModule() {
  vi.resetModules();
  return await import('../../src/run/sink.ts');
}

describe('the sink of the process', () => {
  test('is created once, at the first run after a factory was registered', async () => {
    const { currentSink, registerSinkFactory } = await freshModule();
    expect(currentSink()).toBeUndefined();
    const factory = vi.fn(() => makeSink());
    registerSinkFactory(factory);
    expect(factory).not.toHaveBeenCalled();
    expect(currentSink()).toBe(currentSink());
    expect(factory).toHaveBeenCalledTimes(1);
  });

  test.each([['a sink', makeSink()] as const, ['no sink, which turns tracing off', undefined] as const])(
    'is the one installed last, instead of the factory’s: %s',
    async (_, sink) => {
      const { currentSink, installSink, registerSinkFactory } = await freshModule();
      const factory = vi.fn(() => makeSink());
      registerSinkFactory(factory);
      installSink(makeSink());
      installSink(sink);
      expect(currentSink()).toBe(sink);
      expect(factory).not.toHaveBeenCalled();
    },
  );

  test('stays undefined if the factory returns none', async () => {
    const { currentSink, registerSinkFactory } = await freshModule();
    const factory = vi.fn(() => undefined);
    registerSinkFactory(factory);
    expect([currentSink(), currentSink()]).toEqual([undefined, undefined]);
    expect(factory).toHaveBeenCalledTimes(1);
  });

  test('is overridden until each override is undone, in any order', async () => {
    const { currentSink, installSink, overrideSink } = await freshModule();
    const [first, second, configured] = [makeSink(), makeSink(), makeSink()];
    const [undoFirst, undoSecond] = [overrideSink(first), overrideSink(second)];
    installSink(configured);
    undoFirst();
    undoFirst();
    expect(currentSink()).toBe(second);
    undoSecond();
    expect(currentSink()).toBe(configured);
  });
});
