import { describe, expect, onTestFinished, test } from 'vitest';
import {
  activeSpan,
  addStepSource,
  currentContext,
  enterContext,
  enteredContext,
  type RunContext,
  setSpanSource,
} from '#src/run/context.ts';

function makeContext(id: string, span?: object): RunContext {
  return Object.freeze({
    id,
    traceId: id,
    dottedOrder: id,
    project: 'default',
    tags: undefined,
    metadata: undefined,
    fields: undefined,
    added: undefined,
    refused: false,
    sampled: true,
    exporter: undefined,
    span,
    step: undefined,
    owner: undefined,
  });
}

/** Registers a span source until the test has finished. `active` is the active span. */
function withSpans(contexts: Map<object, RunContext> = new Map()) {
  const spans = { active: undefined as object | undefined };
  setSpanSource({
    activeSpan: () => spans.active,
    traceOf: () => undefined,
    contextOf: (span) => contexts.get(span),
  });
  onTestFinished(() => setSpanSource(undefined));
  return spans;
}

describe('an active span', () => {
  test('that was active when the run was entered is outside of it', () => {
    const span = {};
    const spans = withSpans(new Map([[span, makeContext('span')]]));
    spans.active = span;
    expect(currentContext()?.id).toBe('span');
    enterContext(makeContext('run'), () => expect(currentContext()?.id).toBe('run'));
  });

  test('that became active within the run is inside of it', () => {
    const span = {};
    const spans = withSpans(new Map([[span, makeContext('span')]]));
    enterContext(makeContext('run'), () => {
      spans.active = span;
      expect(currentContext()?.id).toBe('span');
      expect(enteredContext()?.id).toBe('run');
      expect(activeSpan()).toBe(span);
    });
  });

  test('without a run does not change the current run', () => {
    const spans = withSpans();
    enterContext(makeContext('run'), () => {
      spans.active = {};
      expect(currentContext()?.id).toBe('run');
    });
  });
});

/** Registers a step source until the test has finished. `active` is the active step. */
function withSteps() {
  const steps = { active: undefined as RunContext | undefined };
  onTestFinished(addStepSource(() => steps.active));
  return steps;
}

describe('a step of a framework', () => {
  test('is the current context if no run was entered', () => {
    const steps = withSteps();
    steps.active = makeContext('step');
    expect([currentContext()?.id, enteredContext()?.id]).toEqual(['step', 'step']);
  });

  test('is inside of a run entered before it, and outside of a run entered in it', () => {
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

  test('contains spans that became active later', () => {
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
