import { z } from 'zod';

const CHARACTERS_MAX = 512;

/** What a checkpoint is called by, or its namespace, as clients give it: stores look for it as it is, and PostgreSQL takes no NUL. */
export const CHECKPOINT_NAME = z
  .string()
  .max(CHARACTERS_MAX)
  .refine((name) => !name.includes('\0'), 'Expected no NUL');

export const CHECKPOINT_ID = CHECKPOINT_NAME.min(1);
