/** The key of feedback whose comment is a note of a developer. */
export const NOTE = 'note';

/** Feedback on a run. */
export interface Feedback {
  id: string;
  run_id: string;
  /** Name of the feedback, for example `user_liked`. Maximum length: 180 characters. */
  key: string;
  score?: number | boolean;
  value?: number | boolean | string | Record<string, unknown>;
  comment?: string;
  correction?: string | Record<string, unknown>;
  metadata?: Record<string, unknown>;
  created_at: string;
  modified_at: string;
}

/** Returns whether feedback says something. A null, an empty text and an empty object do not. */
export function hasContent({ score, value, comment, correction, metadata }: Partial<Feedback>): boolean {
  const given = [score, value, comment, correction, metadata].map((one) => one ?? '');
  return given.some((one) => one !== '' && !(typeof one === 'object' && Object.keys(one).length === 0));
}

/**
 * A token that lets clients without a key give feedback on a run. Until a token expires or is revoked, anyone who knows
 * the token's text can give feedback.
 */
export interface FeedbackToken {
  tenant: string;
  id: string;
  run_id: string;
  feedback_key: string;
  /** Id of the feedback. New feedback with the same token replaces earlier feedback. */
  feedback_id: string;
  created_ms: number;
  /** ISO 8601 timestamp in UTC. */
  expires_at: string;
}

/** Summary of all feedback with the same key. */
export interface FeedbackFigures {
  key: string;
  count: number;
  /** Average of all numeric scores. Absent if no score is a number. */
  average_score?: number;
}

export function figuresOf(feedback: readonly Pick<Feedback, 'key' | 'score'>[]): FeedbackFigures[] {
  return [...new Set(feedback.map(({ key }) => key))].sort().map((key) => {
    const own = feedback.filter((one) => one.key === key);
    const scores = own.flatMap(({ score }) => (score === undefined ? [] : [Number(score)]));
    const average = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    return { key, count: own.length, ...(scores.length === 0 ? {} : { average_score: average }) };
  });
}
