/** A message in a common format for all providers. */
export interface Message {
  readonly role: string;
  readonly name?: string | undefined;
  readonly parts: readonly Part[];
}

/** A part of a message's content. Parts of the kind `other` are shown as JSON. */
export type Part =
  | { readonly kind: 'text' | 'reasoning' | 'refusal'; readonly text: string }
  | { readonly kind: 'media'; readonly source: string; readonly type?: string | undefined }
  | { readonly kind: 'call'; readonly id?: string | undefined; readonly name: string; readonly input: unknown }
  | {
      readonly kind: 'result';
      readonly id?: string | undefined;
      readonly name?: string | undefined;
      readonly value: unknown;
      readonly isError: boolean;
    }
  | { readonly kind: 'other'; readonly value: unknown };

export type ToolCall = Extract<Part, { kind: 'call' }>;
export type ToolResult = Extract<Part, { kind: 'result' }>;
