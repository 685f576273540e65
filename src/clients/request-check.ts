import { isObject } from '../base/options.ts';
import { deploymentErrors } from './deployment-rules.ts';
import { type CheckMode, resourceErrors, uuidErrors } from './field-check.ts';
import { resourceSpecErrors } from './resource-spec-rules.ts';
import { InvalidRequestError, type ValidationError } from './validation-error.ts';

/** What of a call is checked before it is sent. */
export interface CheckedRequest {
  /** Ids of the path. */
  readonly path?: Readonly<Record<string, unknown>>;
  /** Lists of ids of the query. */
  readonly query?: Readonly<Record<string, readonly unknown[]>>;
  readonly body?: unknown;
  /** What the body is. */
  readonly resource?: 'Deployment' | 'Listener';
  readonly mode?: CheckMode;
}

/** Throws an InvalidRequestError with everything that breaks a rule. */
export function checkRequest(call: string, { path, query, body, resource, mode = 'create' }: CheckedRequest): void {
  const errors: ValidationError[] = [
    ...Object.entries(path ?? {}).flatMap(([name, id]) => uuidErrors(id, ['path', name])),
    ...Object.entries(query ?? {}).flatMap(([name, ids]) =>
      ids.flatMap((id, index) => uuidErrors(id, ['query', name, index])),
    ),
    ...(resource === undefined ? [] : resourceErrors(resource, body, ['body'], mode)),
    ...(resource === 'Deployment' ? deploymentErrors(body, mode) : []),
    ...(resource === 'Deployment' ? resourceSpecErrors(specOf(body), ['body', 'source_config', 'resource_spec']) : []),
  ];
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
}

function specOf(body: unknown): unknown {
  const config = isObject(body) ? body.source_config : undefined;
  return isObject(config) ? config.resource_spec : undefined;
}
