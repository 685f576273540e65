import { controlPlaneFields, type Field, type ResourceName } from '../../src/clients/control-plane-fields.ts';

type Words = Readonly<Record<string, string>>;
type Loc = readonly (string | number)[];

export interface Detail {
  readonly loc: Loc;
  readonly msg: string;
  readonly type: string;
  readonly input?: unknown;
}

type Wire = Record<string, unknown>;

const isObject = (value: unknown): value is Wire =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * What a service answers to a body, read from the tables and written apart from the client's checks: the shape of it gives the list of a
 * 422, a broken rule the text of a 400. `words` are those that the service has in the place of the interface's.
 */
export class ControlPlaneValidator {
  readonly #words: Words;

  constructor(words: Words) {
    this.#words = words;
  }

  wire(word: string): string {
    return this.#words[word] ?? word;
  }

  /** The 422. */
  shape(resource: ResourceName, body: unknown, isPatch: boolean): Detail[] {
    return this.#resource(resource, body, ['body'], isPatch);
  }

  /** The 400 of a deployment, whose source is known. */
  rule(body: Wire, isPatch: boolean, source: string): string | undefined {
    const config = isObject(body.source_config) ? body.source_config : {};
    const revision = isObject(body.source_revision_config) ? body.source_revision_config : {};
    const ofRevision = typeof body.revision_source === 'string' ? body.revision_source : source;
    return (
      this.#partRule('Deployment', body, isPatch, source) ??
      this.#partRule('SourceConfig', config, isPatch, source) ??
      this.#partRule(
        'ListenerConfig',
        isObject(config.listener_config) ? config.listener_config : {},
        isPatch,
        source,
      ) ??
      this.#partRule('SourceRevisionConfig', revision, isPatch, ofRevision) ??
      (config.build_on_push === true && String(revision.repo_ref ?? '').startsWith('refs/tags/')
        ? 'build_on_push cannot be true for a tag.'
        : undefined) ??
      this.#specRule(isObject(config.resource_spec) ? config.resource_spec : {})
    );
  }

  #partRule(resource: ResourceName, part: Wire, isPatch: boolean, source: string): string | undefined {
    for (const [name, field] of Object.entries(controlPlaneFields[resource])) {
      const wire = this.wire(name);
      const isSet = part[wire] !== undefined && part[wire] !== null;
      const sources = field.sources?.map((one) => this.wire(one));
      if (isSet && field.readOnly) return `${wire} is read-only.`;
      if (isSet && isPatch && field.immutable) return `${wire} cannot be updated.`;
      if (isSet && !isPatch && field.patchOnly) return `${wire} is for updates.`;
      if (isSet && sources && !sources.includes(source)) return `${wire} is not for source ${source}.`;
      const required = field.requiredFor?.map((one) => this.wire(one));
      if (!isSet && !isPatch && required?.includes(source)) return `${wire} is required for source ${source}.`;
    }
    return undefined;
  }

  #specRule(spec: Wire): string | undefined {
    const list = (value: unknown): Wire[] => (Array.isArray(value) ? value.filter(isObject) : []);
    const volumes = list(spec.volumes).map(({ name }) => name);
    if (new Set(volumes).size < volumes.length) return 'Names of volumes must be unique.';
    const containers = [...list(spec.init_containers), ...list(spec.sidecars)];
    const mounts = [...list(spec.volume_mounts), ...containers.flatMap(({ volumeMounts }) => list(volumeMounts))];
    if (mounts.some(({ name }) => !volumes.includes(name))) return 'A volume mount names no volume.';
    const variables = containers.flatMap(({ env }) => list(env));
    return variables.some(({ value, valueFrom }) => value && valueFrom)
      ? 'valueFrom cannot be used when value is not empty.'
      : undefined;
  }

  #resource(resource: ResourceName, value: unknown, loc: Loc, isPatch: boolean): Detail[] {
    if (!isObject(value)) return [detail(loc, 'Input should be a valid dictionary', 'dict_type', value)];
    const fields = new Map(
      Object.entries(controlPlaneFields[resource]).map(([name, field]) => [this.wire(name), field]),
    );
    const isRoot = loc.length === 1;
    const found: Detail[] = [];
    for (const [name, field] of fields) {
      const isAsked = field.required && !field.readOnly && field.default === undefined && !(isPatch && isRoot);
      if (isAsked && value[name] === undefined) found.push(detail([...loc, name], 'Field required', 'missing', value));
    }
    for (const [name, one] of Object.entries(value)) {
      const field = fields.get(name);
      if (!field) found.push(detail([...loc, name], 'Extra inputs are not permitted', 'extra_forbidden', one));
      else if (one !== null || !(field.nullable || (isPatch && isRoot)))
        found.push(...this.#field(field, one, [...loc, name], isPatch));
    }
    return found;
  }

  #field(field: Field, value: unknown, loc: Loc, isPatch: boolean): Detail[] {
    if (!field.list) return this.#value(field, value, loc, isPatch);
    if (!Array.isArray(value)) return [detail(loc, 'Input should be a valid list', 'list_type', value)];
    return value.flatMap((item, index) => this.#value(field, item, [...loc, index], isPatch));
  }

  #value(field: Field, value: unknown, loc: Loc, isPatch: boolean): Detail[] {
    switch (field.type) {
      case 'boolean':
        return typeof value === 'boolean' ? [] : [detail(loc, 'Input should be a valid boolean', 'bool_type', value)];
      case 'integer':
        return Number.isInteger(value) ? [] : [detail(loc, 'Input should be a valid integer', 'int_type', value)];
      case 'number': {
        if (typeof value !== 'number') return [detail(loc, 'Input should be a valid number', 'float_type', value)];
        const { min = value, max = value } = field;
        if (value < min)
          return [detail(loc, `Input should be greater than or equal to ${min}`, 'greater_than_equal', value)];
        return value > max
          ? [detail(loc, `Input should be less than or equal to ${max}`, 'less_than_equal', value)]
          : [];
      }
      case 'object':
        return isObject(value) ? [] : [detail(loc, 'Input should be a valid dictionary', 'dict_type', value)];
      case 'map': {
        if (!isObject(value)) return [detail(loc, 'Input should be a valid dictionary', 'dict_type', value)];
        return Object.entries(value).flatMap(([key, text]) =>
          typeof text === 'string'
            ? []
            : [detail([...loc, key], 'Input should be a valid string', 'string_type', text)],
        );
      }
      case 'string':
      case 'date-time':
      case 'uuid':
        return this.#text(field, value, loc);
      default:
        return this.#resource(field.type, value, loc, isPatch);
    }
  }

  #text(field: Field, value: unknown, loc: Loc): Detail[] {
    if (typeof value !== 'string') return [detail(loc, 'Input should be a valid string', 'string_type', value)];
    const values = field.values?.map((one) => this.wire(one));
    if (values && !values.includes(value)) return [detail(loc, `Input should be ${values.join(', ')}`, 'enum', value)];
    const patterns = {
      uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i,
      'DNS label': /^(?=.{1,63}$)[a-z\d]+(-+[a-z\d]+)*$/,
      'C identifier': /^[_a-z]\w*$/i,
    };
    const pattern = field.type === 'uuid' ? patterns.uuid : field.form && patterns[field.form];
    return !pattern || pattern.test(value) ? [] : [detail(loc, `Input should match ${pattern}`, 'value_error', value)];
  }
}

function detail(loc: Loc, msg: string, type: string, input: unknown): Detail {
  return { loc, msg, type, input };
}
