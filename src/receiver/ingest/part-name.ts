import { cut } from '../../base/text.ts';
import { Refusal } from '../refusal.ts';
import { parseUuid, type RunField } from './run-fields.ts';

/**
 * The content of a part, according to its name (interface, "POST /runs/multipart", rules 3 and 4):
 *
 *     <post|patch>.<run id>                           the run record
 *     <post|patch>.<run id>.<inputs|outputs|events>   a payload
 *     attachment.<run id>.<name>                      an attachment of the run, whose name may contain dots
 *
 * Outside strict mode, also `<post|patch>.<run id>.<extra|error|serialized>` and `feedback.<feedback id>`, which other clients
 * send.
 */
export type PartName =
  | { readonly kind: 'record'; readonly operation: 'post' | 'patch'; readonly id: string }
  | {
      readonly kind: 'payload';
      readonly operation: 'post' | 'patch';
      readonly id: string;
      readonly field: PartField;
    }
  | { readonly kind: 'attachment'; readonly id: string; readonly name: string }
  | { readonly kind: 'feedback'; readonly id: string };

export type PartField = Extract<RunField, 'inputs' | 'outputs' | 'events' | 'extra' | 'error'> | 'serialized';

const NAME = /^(post|patch|feedback)\.([^.]+)(?:\.([^.]*))?$/;
const ATTACHMENT = /^attachment\.([^.]+)\.(.+)$/s;

/** Refuses with 400 what is not of the grammar, and in strict mode what is only of the field's. */
export function parsePartName(name: string, strict: boolean): PartName {
  const [, attachedTo, attachment] = ATTACHMENT.exec(name) ?? [];
  const [, operation, run, field] = NAME.exec(name) ?? [];
  const id = parseUuid(attachedTo ?? run ?? '', !strict);
  if (id === undefined) throw refusal(name, strict);
  if (attachment !== undefined) return { kind: 'attachment', id, name: attachment };
  if (operation === 'feedback' && field === undefined && !strict) return { kind: 'feedback', id };
  if (operation !== 'post' && operation !== 'patch') throw refusal(name, strict);
  if (field === undefined) return { kind: 'record', operation, id };
  if (!isPayload(field, strict)) throw refusal(name, strict);
  return { kind: 'payload', operation, id, field };
}

function isPayload(field: string, strict: boolean): field is PartField {
  return /^(inputs|outputs|events)$/.test(field) || (!strict && /^(extra|error|serialized)$/.test(field));
}

function refusal(name: string, strict: boolean): Refusal {
  const uuid = strict ? '<uuid with hyphens>' : '<uuid>';
  const fields = strict ? 'inputs|outputs|events' : 'inputs|outputs|events|extra|error|serialized';
  const feedback = strict ? '' : `, feedback.${uuid}`;
  return new Refusal(
    400,
    `Expected the name of a part to be <post|patch>.${uuid}[.${fields}]${feedback} or attachment.${uuid}.<name>, got ${JSON.stringify(cut(name, 120))}`,
  );
}
