import { type Check, isObject, WHOLE_FROM_1 } from '../../../config/checker.ts';

/** Maximum ages in milliseconds by tenant and project, instead of `maxAgeMs`. */
export type ProjectAges = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface Ages {
  readonly maxAgeMs: number;
  readonly projectMaxAgeMs: ProjectAges;
}

export const MAX_AGE_MS: number = 30 * 86_400_000;

export const PROJECT_AGES: Check = [
  'an object with an object of whole numbers from 1 for each tenant',
  (value) =>
    isObject(value) &&
    Object.values(value).every((ages) => isObject(ages) && Object.values(ages).every(WHOLE_FROM_1[1])),
];
