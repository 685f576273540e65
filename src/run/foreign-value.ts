import { messageOf } from '../base/text.ts';

/** What a property holds; where reading it throws, what is told of that. */
export function read(object: object, key: string | number): unknown {
  try {
    return (object as Record<string | number, unknown>)[key];
  } catch (thrown) {
    return threw(thrown);
  }
}

/** What a proxy of a list says of its length can be anything. */
export function lengthOf(length: unknown): number {
  return Number.isSafeInteger(length) ? Math.max(0, length as number) : 0;
}

/** By its name, as that is found sooner than by a key that is different each time. */
export function toJsonOf(value: object): unknown {
  try {
    return (value as { toJSON?: unknown }).toJSON;
  } catch (thrown) {
    return threw(thrown);
  }
}

export function threw(thrown: unknown): string {
  return `[Threw: ${messageOf(thrown)}]`;
}

export function otherText(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return value.toString();
  const name = read(value as object, 'name');
  return `[Function ${typeof name === 'string' && name !== '' ? name : 'anonymous'}]`;
}

export function hasPlainPrototype(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Whether somebody has given all objects, or all lists, this `toJSON`: it says nothing about one of them. */
export function isInherited(toJson: unknown): boolean {
  return [Object.prototype, Array.prototype].some(
    (prototype) => Object.getOwnPropertyDescriptor(prototype, 'toJSON')?.value === toJson,
  );
}

export function isPrototypePolluted(): boolean {
  for (const _ in Object.prototype) return true;
  return false;
}
