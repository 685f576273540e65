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
  test('takes the place of the one there was, until it is undone', async () => {
    const { currentSink, installSink } = await freshModule();
    const [first, second] = [makeSink(), makeSink()];
    const undoFirst = installSink(first);
    const undoSecond = installSink(second);
    expect(currentSink()).toBe(second);
    undoSecond();
    expect(currentSink()).toBe(first);
    undoFirst();
    expect(currentSink()).toBeUndefined();
  });

  test('keeps the factory waiting, and leaves it to be asked when it is undone', async () => {
    const { currentSink, installSink, registerSinkFactory } = await freshModule();
    const [built, installed] = [makeSink(), makeSink()];
    const factory = vi.fn(() => built);
    registerSinkFactory(factory);
    const undo = installSink(installed);
    expect(currentSink()).toBe(installed);
    expect(factory).not.toHaveBeenCalled();
    undo();
    expect(currentSink()).toBe(built);
  });

  test('may be none: tracing is off, whatever the factory would give', async () => {
    const { currentSink, installSink, registerSinkFactory } = await freshModule();
    registerSinkFactory(() => makeSink());
    installSink(undefined);
    expect(currentSink()).toBeUndefined();
  });

  test('that has been replaced is undone without harm to the one that replaced it', async () => {
    const { currentSink, installSink } = await freshModule();
    const [recorder, configured] = [makeSink(), makeSink()];
    const undo = installSink(recorder);
    installSink(configured);
    undo();
    expect(currentSink()).toBe(configured);
  });

  test('is undone once, however often it is asked for', async () => {
    const { currentSink, installSink } = await freshModule();
    const [first, later] = [makeSink(), makeSink()];
    const undo = installSink(first);
    undo();
    installSink(later);
    undo();
    expect(currentSink()).toBe(later);
  });
});
