import { describe, expect, test, vi } from 'vitest';
import { createExporter, redact, startRun } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { gate } from '../support/gate.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { sendRun, service } from './service.ts';

describe('a recorded run', () => {
  test('has five facts of the process and no environment variables [security 14]', async () => {
    vi.stubEnv('CANARY_VARIABLE', 'canary-of-the-environment');
    const { server } = await service();
    await sendRun(createExporter({ endpoint: server.url }));
    const [request] = server.received;
    const [main] = readJsonParts(request as NonNullable<typeof request>).values();
    const { runtime } = (main as { extra: { runtime: object } }).extra;
    expect(Object.keys(runtime).sort()).toEqual(['platform', 'runtime', 'runtime_version', 'sdk', 'sdk_version']);
    const sent = `${request?.body}${JSON.stringify(request?.headers)}`;
    const { argv, env, execPath } = process;
    for (const text of ['canary', process.cwd(), argv[1], execPath, env.HOME, env.PATH]) {
      if (text) expect(sent).not.toContain(text);
    }
  });

  test('is redacted before it is queued, so later changes and cuts reveal nothing [security 14]', async () => {
    const answer = gate<{ status: number }>();
    const { server } = await service(() => answer);
    const asked: string[] = [];
    const replace = (found: string): string => {
      asked.push(found);
      return '[hidden]';
    };
    const rules = redact({ patterns: [/canary-\d+/], replace });
    const exporter = createExporter({ endpoint: server.url, limits: { payloadCharacters: 400 }, redact: rules });
    const inputs = { text: `${'x'.repeat(190)}canary-123456789${'y'.repeat(400)}` };
    const run = startRun({ name: 'a', exporter, inputs });
    expect(asked).not.toEqual([]);
    inputs.text = 'canary-1';
    run.end();
    answer.open({ status: 202 });
    await exporter.close();
    expect(server.received[0]?.body.toString()).not.toMatch(/canary|-1234/);
    expect(exporter.stats().dropped).toBe(0);
  });
});

/** Counts the characters examined, parsed and copied while `work` runs. Regular expressions have a separate test. */
function charactersOf(work: () => void): number {
  let count = 0;
  const { charCodeAt, indexOf, slice } = String.prototype;
  const { parse } = JSON;
  // Plain functions: a spy keeps the arguments of millions of calls.
  const counting = {
    charCodeAt(this: string, at: number): number {
      count++;
      return charCodeAt.call(this, at);
    },
    indexOf(this: string, text: string, from = 0): number {
      const found = indexOf.call(this, text, from);
      count += (found < 0 ? this.length : found) - from + 1;
      return found;
    },
    slice(this: string, start?: number, end?: number): string {
      const part = slice.call(this, start, end);
      count += part.length;
      return part;
    },
  };
  try {
    Object.assign(String.prototype, counting);
    JSON.parse = (text: string, reviver?: (key: string, value: unknown) => unknown) => {
      count += text.length;
      return parse(text, reviver);
    };
    work();
    return count;
  } finally {
    Object.assign(String.prototype, { charCodeAt, indexOf, slice });
    JSON.parse = parse;
  }
}

describe('the search for names in text', () => {
  const nested = (levels: number, text: string): string =>
    levels === 0 ? text : JSON.stringify({ a: nested(levels - 1, text) });
  const times = (text: string) => (length: number) => text.repeat(Math.ceil(length / text.length));
  const shapes: Record<string, (length: number) => string> = {
    'opening braces': times('{'),
    'opening brackets': times('['),
    'nested names': times('{"password":'),
    'lists that do not end': (length) => `${times('[')(length)}"password"`,
    'a JSON text that does not end': (length) => `{"password":"${times('x')(length)}`,
    'escaped quotation marks after a name': (length) => `{"password":"${times('\\"')(length)}`,
    'names whose values are shown': times('{"token":"a",'),
    'values that do not end': times('{"token":"\\"'),
    'more backslashes each time': (length) =>
      Array.from({ length: Math.sqrt(length) }, (_, at) => `{token${'\\'.repeat(at)}":${'\\'.repeat(at)}"`).join(''),
    'escapes of letters': (length) => `{"a":"${times('\\u0061')(length)}"}`,
    'JSON text in JSON text': (length) => nested(6, `{"password":"${times('x')(length)}"}`),
    'lists of JSON text': (length) => JSON.stringify(times('{"password":"x"} ')(length).split(' ')),
    'white space': (length) => `${times(' ')(length)}{"password":"x"`,
    'beginnings of URLs': times('://'),
    'users of URLs': times('://a@'),
    'users and passwords of URLs': times('://a:b'),
    'parameters without an end': (length) => `https://a?${times('key=')(length)}`,
    'parameters that are shown': (length) => `https://a?${times('&key=a')(length)}`,
    'parameters that are hidden': (length) => `https://a?${times('&token=k9')(length)}`,
    'a path of separators': (length) => `/${times('?&#;=')(length)}`,
  };

  test.each(Object.entries(shapes))(
    'takes time proportional to the length of the text: %s [security 13]',
    (_, make) => {
      const workOn = (length: number): number => {
        const recorder = recordRuns();
        try {
          const text = make(length);
          return charactersOf(() => void startRun({ name: 'a', inputs: { text } }).end());
        } finally {
          recorder.stop();
        }
      };
      workOn(1_000);
      expect(workOn(40_000) / workOn(20_000)).toBeLessThan(2.3);
    },
  );
});
