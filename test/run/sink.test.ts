import { describe, expect, test, vi } from 'vitest';
import { makeSink } from './memory-sink.ts';

/** The module as it is when the process has just started. */
async function freshModule() {
  vi.resetModules();
  return await import('../../src/run/sink.ts');
}

describe('the sink of the process', () => {
  test('is none while nothing has been registered', async () => {
    const { currentSink } = await freshModule();
    expect(currentSink()).toBeUndefined();
  });

  test('is built at the first run, once', async () => {
    const { currentSink, registerSinkFactory } = await freshModule();
    const factory = vi.fn(() => makeSink());
    registerSinkFactory(factory);
    expect(factory).not.toHaveBeenCalled();
    expect(currentSink()).toBe(currentSink());
    expect(factory).toHaveBeenCalledTimes(1);
  });

  test('stays none when the factory gives none, and is not asked again', async () => {
    const { currentSink, registerSinkFactory } = await freshModule();
    const factory = vi.fn(() => undefined);
    registerSinkFactory(factory);
    expect([currentSink(), currentSink()]).toEqual([undefined, undefined]);
    expect(factory).toHaveBeenCalledTimes(1);
  });

  test('may be registered after a first run', async () => {
    const { currentSink, registerSinkFactory } = await freshModule();
    const sink = makeSink();
    currentSink();
    registerSinkFactory(() => sink);
    expect(currentSink()).toBe(sink);
  });
});

describe('a sink that is installed', () => {
  test('takes the place of the one there was', async () => {
    const { currentSink, installSink } = await freshModule();
    const [first, second] = [makeSink(), makeSink()];
    installSink(first);
    installSink(second);
    expect(currentSink()).toBe(second);
  });

  test('leaves the factory unasked', async () => {
    const { currentSink, installSink, registerSinkFactory } = await freshModule();
    const factory = vi.fn(makeSink);
    registerSinkFactory(factory);
    const installed = makeSink();
    installSink(installed);
    expect(currentSink()).toBe(installed);
    expect(factory).not.toHaveBeenCalled();
  });

  test('may be none: tracing is off, whatever the factory would give', async () => {
    const { currentSink, installSink, registerSinkFactory } = await freshModule();
    registerSinkFactory(() => makeSink());
    installSink(undefined);
    expect(currentSink()).toBeUndefined();
  });
});

describe('a sink that stands in', () => {
  test('takes all runs until it is undone, and leaves the factory to be asked then', async () => {
    const { currentSink, overrideSink, registerSinkFactory } = await freshModule();
    const [built, recorder] = [makeSink(), makeSink()];
    const factory = vi.fn(() => built);
    registerSinkFactory(factory);
    const undo = overrideSink(recorder);
    expect(currentSink()).toBe(recorder);
    expect(factory).not.toHaveBeenCalled();
    undo();
    expect(currentSink()).toBe(built);
  });

  test('does so also when another sink is installed meanwhile', async () => {
    const { currentSink, installSink, overrideSink } = await freshModule();
    const [recorder, configured] = [makeSink(), makeSink()];
    const undo = overrideSink(recorder);
    installSink(configured);
    expect(currentSink()).toBe(recorder);
    undo();
    expect(currentSink()).toBe(configured);
  });

  test('is undone alone, in whatever order several are, and once', async () => {
    const { currentSink, overrideSink } = await freshModule();
    const [first, second] = [makeSink(), makeSink()];
    const [undoFirst, undoSecond] = [overrideSink(first), overrideSink(second)];
    undoFirst();
    undoFirst();
    expect(currentSink()).toBe(second);
    undoSecond();
    expect(currentSink()).toBeUndefined();
  });
});
