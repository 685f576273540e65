import type { Answer, Fold } from './answer.ts';
import { type Fields, fieldsOf, without } from './fields.ts';

/** What the event of a whole image says of the image itself; the rest is of the answer. */
const OF_IMAGE = new Set(['b64_json']);
const OF_EVENT = new Set(['type', 'b64_json', 'created_at', 'partial_image_index']);

/** Events of streamed images: the whole images, and how many partial ones came before them. */
export class ImagesFold implements Fold {
  characters = 0;
  readonly #read: (answer: Fields) => Answer;
  readonly #images: Fields[] = [];
  #partial = 0;
  #answer: Fields = {};

  constructor(read: (answer: Fields) => Answer) {
    this.#read = read;
  }

  add(event: unknown): void {
    const { type, ...fields } = fieldsOf(event);
    if (typeof type !== 'string' || !type.endsWith('.completed')) {
      this.#partial++;
      return;
    }
    this.#images.push(Object.fromEntries(Object.entries(fields).filter(([key]) => OF_IMAGE.has(key))));
    this.#answer = { created: fields.created_at, ...without(fields, OF_EVENT) };
  }

  answer(): Answer {
    const partial = this.#partial === 0 ? {} : { partial_images: this.#partial };
    return this.#read({ ...this.#answer, data: this.#images, ...partial });
  }
}
