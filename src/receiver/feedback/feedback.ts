/** What somebody says of a run. */
export interface Feedback {
  id: string;
  run_id: string;
  /** What it is about, for example `user_liked`: 180 characters at the most. */
  key: string;
  score?: number | boolean;
  value?: number | boolean | string | Record<string, unknown>;
  comment?: string;
  correction?: string | Record<string, unknown>;
  metadata?: Record<string, unknown>;
  created_at: string;
  modified_at: string;
}

/** Lets whoever holds its id say something of a run, until it expires. */
export interface FeedbackToken {
  id: string;
  run_id: string;
  feedback_key: string;
  /** Of the feedback that it gives: again given, it takes the place of the earlier. */
  feedback_id: string;
  /** ISO 8601, UTC. */
  expires_at: string;
}

/** What is said of a run under one key. */
export interface FeedbackFigures {
  key: string;
  count: number;
  /** Absent when nothing said has a number as its score. */
  average_score?: number;
}
