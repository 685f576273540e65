import type { Limits } from '../base/limits.ts';
import type { Redaction } from './redaction.ts';

/** Bounds of one payload (one of `inputs`, `outputs`, one event); what lies beyond is cut, and a marker says so. */
export interface PayloadLimits {
  /** Levels of nesting. */
  readonly depth: number;
  /** Items of one array, keys of one object. */
  readonly width: number;
  /** Values in all. */
  readonly nodes: number;
  /** Characters of text in all. */
  readonly bytes: number;
}

/** What becomes of a payload on its way to text: how much of it is kept, and what of that is shown. */
export interface PayloadRules extends PayloadLimits {
  /** Undefined where everything is shown. */
  readonly redaction?: Redaction | undefined;
}

/** The rules of payloads, out of all limits that there are. */
export function payloadRules(limits: Limits, redaction: Redaction | undefined): PayloadRules {
  const { payloadDepth: depth, payloadWidth: width, payloadNodes: nodes, payloadBytes: bytes } = limits;
  return { depth, width, nodes, bytes, redaction };
}
