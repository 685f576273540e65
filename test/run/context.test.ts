import { describe, expect, onTestFinished, test } from 'vitest';
import {
  activeSpan,
  currentContext,
  enterContext,
  enteredContext,
  innermostContext,
  type RunContext,
  setSpanSource,
  setStepSource,
} from '../../src/run/context.ts';

function makeContext(id: string, span?: object): RunContext {
  return Object.freeze({
    id,
    traceId: id,
    dottedOrder: id,
    project: 'default',
    tags: undefined,
    metadata: undefined,
    refused: false,
    sampled: true,
    exporter: undefined,
    span,
    step: undefined,
    owner: undefined,
  });
}

/** `otel/` tells of these spans until the test has finished; the last that was set is the active one. */
function withSpans(contexts: Map<object, RunContext> = new Map()) {
  const spans = { active: undefined as object | undefined };
  setSpanSource({ activeSpan: () => spans.active, contextOf: (span) => contexts.get(span) });
  onTestFinished(() => setSpanSource(undefined));
  return spans;
}

describe('an active span', () => {
  test('that was active when the run was entered lies outside of it', () => {
    const span = {};
    const spans = withSpans(new Map([[span, makeContext('span')]]));
    spans.active = span;
    expect(currentContext()?.id).toBe('span');
    enterContext(makeContext('run'), () => expect(currentContext()?.id).toBe('run'));
  });

  test('that became active within the run lies inside of it', () => {
    const span = {};
    const spans = withSpans(new Map([[span, makeContext('span')]]));
    enterContext(makeContext('run'), () => {
      spans.active = span;
      expect(currentContext()?.id).toBe('span');
      expect(enteredContext()?.id).toBe('run');
      expect(activeSpan()).toBe(span);
    });
  });

  test('that became no run leaves the one entered', () => {
    const spans = withSpans();
    enterContext(makeContext('run'), () => {
      spans.active = {};
      expect(currentContext()?.id).toBe('run');
    });
  });

  test('is taken for the innermost, or not, for a span that starts below it too', () => {
    const [outside, inside, unknown] = [{}, {}, {}];
    withSpans(new Map([[inside, makeContext('span')]]));
    const entered = makeContext('run', outside);
    expect(innermostContext(entered, undefined)?.id).toBe('run');
    expect(innermostContext(entered, outside)?.id).toBe('run');
    expect(innermostContext(entered, inside)?.id).toBe('span');
    expect(innermostContext(entered, unknown)?.id).toBe('run');
    expect(innermostContext(undefined, unknown)).toBeUndefined();
  });
});

/** A framework tells of these steps until the test has finished; the last that was set is the active one. */
function withSteps() {
  const steps = { active: undefined as RunContext | undefined };
  setStepSource(() => steps.active);
  onTestFinished(() => setStepSource(undefined));
  return steps;
}

describe('a step of a framework', () => {
  test('is the current context where no run was entered', () => {
    const steps = withSteps();
    steps.active = makeContext('step');
    expect([currentContext()?.id, enteredContext()?.id]).toEqual(['step', 'step']);
  });

  test('lies inside of a run that was entered before it, and outside of one that was entered in it', () => {
    const steps = withSteps();
    enterContext(makeContext('outer'), () => {
      steps.active = makeContext('step');
      expect(currentContext()?.id).toBe('step');
      enterContext(makeContext('inner'), () => {
        expect(currentContext()?.id).toBe('inner');
        steps.active = makeContext('inner step');
        expect(currentContext()?.id).toBe('inner step');
        steps.active = undefined;
        expect(currentContext()?.id).toBe('inner');
      });
    });
  });

  test('has the spans inside of it that became active since', () => {
    const [outside, inside] = [{}, {}];
    const spans = withSpans(new Map([[inside, makeContext('inside')]]));
    const steps = withSteps();
    spans.active = outside;
    steps.active = makeContext('step', outside);
    expect(currentContext()?.id).toBe('step');
    spans.active = inside;
    expect([currentContext()?.id, enteredContext()?.id]).toEqual(['inside', 'step']);
  });
});
