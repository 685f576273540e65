import { version } from '../../base/version.ts';
import { type Fields, fieldsOf, parsedJson, textOf } from '../../payload/fields.ts';
import type { AttributeValue, OtlpAttributes, OtlpScope, SpanGroup } from './otlp-span.ts';
import { originOf, type SentRun, spanOfRun } from './run-to-span.ts';

export { jsonEncoding } from './json.ts';
export type { OtlpEncoding } from './otlp-span.ts';
export { protobufEncoding, readProtobufResponse } from './protobuf.ts';
export { sentRecord } from './record-to-span.ts';

const OWN_SCOPE: OtlpScope = { name: 'runspan', version };

/** Attributes of the resource that runs of spans have in their metadata. */
const RESOURCE_KEYS: readonly string[] = ['service.name', 'service.version', 'deployment.environment.name'];

const SDK: Readonly<Record<string, string>> = {
  'telemetry.sdk.name': 'runspan',
  'telemetry.sdk.language': 'nodejs',
  'telemetry.sdk.version': version,
};

/**
 * The spans of a request, grouped by resource and scope. `resource` has the attributes of the process. Without
 * `service.name`, the project's name is the name of the service.
 */
export class SpanGroups {
  readonly #resource: Readonly<Record<string, AttributeValue>>;
  readonly #groups = new Map<string, SpanGroup>();

  constructor(resource: Readonly<Record<string, AttributeValue>>) {
    this.#resource = resource;
  }

  get all(): readonly SpanGroup[] {
    return [...this.#groups.values()];
  }

  add(sent: SentRun): void {
    const { metadata, project } = sent.run;
    const origin = originOf(sent.run);
    const name = typeof project === 'string' ? project : undefined;
    let key = `${name}\n${origin.scope === undefined ? '' : JSON.stringify(origin.scope)}`;
    if (metadata !== undefined) for (const attribute of RESOURCE_KEYS) key += `\n${metadata.get(attribute) ?? ''}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { resource: this.#resourceOf(name, metadata), scope: scopeOf(origin), spans: [] };
      this.#groups.set(key, group);
    }
    group.spans.push(spanOfRun(sent, origin));
  }

  #resourceOf(project: string | undefined, metadata: SentRun['run']['metadata']): OtlpAttributes {
    const attributes = new Map<string, AttributeValue>(Object.entries({ ...SDK, ...this.#resource }));
    for (const key of RESOURCE_KEYS) {
      const value = textOf(parsedJson(metadata?.get(key)));
      if (value) attributes.set(key, value);
    }
    if (project === undefined) return attributes;
    if (!attributes.has('service.name')) attributes.set('service.name', project);
    return attributes.set('openinference.project.name', project);
  }
}

function scopeOf({ scope }: Fields): OtlpScope {
  if (scope === undefined) return OWN_SCOPE;
  const { name, version: scopeVersion } = fieldsOf(scope);
  return { name: textOf(name) ?? '', version: textOf(scopeVersion) ?? '' };
}
