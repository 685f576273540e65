import { describe, expect, it } from 'vitest';
import { tokensText } from '../../src/cli/tokens.ts';
import { makeRun } from './records.ts';

describe('the tokens of a run', () => {
  it.each<[unknown, string | undefined]>([
    [{ input_tokens: 120, output_tokens: 45, total_tokens: 165 }, '165 tokens (120 in, 45 out)'],
    [{ input_tokens: 120, output_tokens: 45 }, '165 tokens (120 in, 45 out)'],
    [{ total_tokens: 165 }, '165 tokens'],
    [{ input_tokens: 120 }, '120 tokens in'],
    [{ output_tokens: 0 }, '0 tokens out'],
    [{ input_tokens: '120', output_tokens: -1, total_tokens: Number.NaN }, undefined],
    [{}, undefined],
    ['many', undefined],
    [null, undefined],
  ])('of the usage %j read as %s, from outputs or from metadata', (usage_metadata, text) => {
    expect(tokensText(makeRun('1', 'call', { outputs: { usage_metadata } }))).toBe(text);
    expect(tokensText(makeRun('1', 'call', { extra: { metadata: { usage_metadata } } }))).toBe(text);
  });

  it('are unknown when nothing tells them', () => {
    expect(tokensText(makeRun('1', 'call'))).toBeUndefined();
  });
});
