import { RunspanError } from '../base/errors.ts';
import { cut } from '../base/text.ts';

/** What is wrong with one field, in the form of the service (`HTTPValidationError`). */
export interface ValidationError {
  /** Where: `['body', 'source_config', 'repo_url']`, `['path', 'deployment_id']`; numbers are places in lists. */
  readonly loc: readonly (string | number)[];
  /** What is wrong, and what to do. */
  readonly msg: string;
  /** A short name of the kind of mistake: `missing`, `value_error`. */
  readonly type: string;
  /** What was given. A client's own checks leave it out. */
  readonly input?: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/**
 * A call breaks a rule of the interface; nothing was sent. `errors` holds each mistake, in the form in which the service would tell
 * of it, but without the values that were given.
 */
export class InvalidRequestError extends RunspanError {
  override readonly name: string = 'InvalidRequestError';
  readonly errors: readonly ValidationError[];

  constructor(call: string, errors: readonly ValidationError[]) {
    super('RUNSPAN_INVALID_REQUEST', `${call}: ${errors.map(validationText).join('; ')}`);
    this.errors = errors;
    Object.defineProperty(this, 'errors', { value: errors, enumerable: false });
  }
}

/** A mistake on one line: `body.source_config.repo_url: Field required`. */
export function validationText({ loc, msg }: ValidationError): string {
  const place = loc.map((step) => (typeof step === 'number' ? `[${step}]` : `.${cut(step, 100)}`)).join('');
  return `${place.replace(/^\./, '')}: ${msg}`;
}

/** The list of a body as FastAPI or Zod gives it; empty for any other. */
export function validationErrorsOf(body: unknown): ValidationError[] {
  const { detail, error } = fieldsOf(body);
  if (Array.isArray(detail)) return detail.filter(isValidationError);
  return issuesOf(error).flatMap((issue) => {
    const { path, message, code } = fieldsOf(issue);
    const read = { loc: path, msg: message, type: typeof code === 'string' ? code : 'value_error' };
    return isValidationError(read) ? [read] : [];
  });
}

/** Zod writes its issues into `issues`, from version 4 on into `message` as JSON. */
function issuesOf(error: unknown): unknown[] {
  const { name, issues, message } = fieldsOf(error);
  if (Array.isArray(issues)) return issues;
  if (name !== 'ZodError' || typeof message !== 'string') return [];
  try {
    const read: unknown = JSON.parse(message);
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}

function isValidationError(value: unknown): value is ValidationError {
  const { loc, msg } = fieldsOf(value);
  const isPlace = (step: unknown): boolean => typeof step === 'string' || typeof step === 'number';
  return Array.isArray(loc) && loc.every(isPlace) && typeof msg === 'string';
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
