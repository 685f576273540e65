/** Maximum ages in milliseconds by tenant and project, instead of `maxAgeMs`. */
export type ProjectAges = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Maximum ages of traces in milliseconds. */
export interface Ages {
  readonly maxAgeMs: number;
  readonly projectMaxAgeMs: ProjectAges;
}

/** Default of `maxAgeMs`: 30 days. */
export const MAX_AGE_MS: number = 30 * 86_400_000;
