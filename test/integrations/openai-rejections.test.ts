// Whether a rejection is handled is told by the process, so this has processes of its own.
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { run } from '../instrument/built.ts';

const program = fileURLToPath(new URL('./programs/rejections.mjs', import.meta.url));

const failed = (status: number): string => `${status} asked to fail with ${status}`;
const between = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);

describe('a failed call', () => {
  test('has as many unhandled rejections with a wrapped client as with a bare one', async () => {
    const both = ['bare', 'traced'].map((mode) => run(program, [mode]));
    const [bare, traced] = await Promise.all(both);
    const linesOf = (stdout = '') => stdout.trimEnd().split('\n').sort();
    const runs = linesOf(traced?.stdout).filter((line) => line.startsWith('run '));

    const expected = [
      ...[415, 418, 420].map((status) => `caught ${failed(status)}`),
      'finally',
      'handled late',
      ...[410, 411, 412, 413, 414, 416, 417, 419, 420, 423].map((status) => `unhandled ${failed(status)}`),
      expect.stringMatching(/^unhandled .*JSON/),
      expect.stringMatching(/^unhandled .*JSON/),
    ];
    expect(bare).toMatchObject({ code: 0, stderr: '' });
    expect(linesOf(bare?.stdout)).toEqual(expected);
    expect({ ...traced, stdout: linesOf(traced?.stdout).filter((line) => !runs.includes(line)) }).toEqual({
      ...bare,
      stdout: linesOf(bare?.stdout),
    });
    const statuses = [...between(410, 420), 423];
    expect(runs).toEqual([
      ...statuses.map((status) => `run APIError: ${failed(status)}`),
      expect.stringContaining('JSON'),
      expect.stringContaining('JSON'),
    ]);
  });
});
