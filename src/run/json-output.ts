const COMMA = 44;
const QUOTE = 34;
const BACKSLASH = 92;
const OPENING_BRACE = 123;

/** A text is put together here, a byte for each character; what no longer fits is made a string and laid aside. */
const PAGE_BYTES = 65_536;
const page = Buffer.allocUnsafeSlow(PAGE_BYTES);
const words = new DataView(page.buffer);

/** Where the next character goes. All before it belongs to texts that are still being put together. */
let end = 0;

/** Up to here it takes less time to look at each character than to copy them all, and then to look at four at once. */
const SHORT_CHARACTERS = 32;

/** So much of a longer text is copied and escaped in one go. */
const STRETCH_CHARACTERS = 4_096;

/** What becomes of one character at most: `\u0000`. */
export const ESCAPE_BYTES_MAX = 6;

/** Any character that is no byte. Of most texts the engine knows without a look that they have none. */
export const WIDE: RegExp = /[^\0-\xff]/;

/** How characters are written that JSON does not allow as they are. */
const ESCAPES: readonly (Buffer | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  const json = JSON.stringify(String.fromCharCode(code)).slice(1, -1);
  return json.length === 1 ? undefined : Buffer.from(json);
});

/** The bytes of a key, with the comma before and the colon after it; undefined where it has characters that are no bytes. */
export function keyBytes(key: string): Buffer | undefined {
  return WIDE.test(key) ? undefined : Buffer.from(`,${JSON.stringify(key)}:`, 'latin1');
}

/**
 * JSON text while it is being put together, byte by byte where that can be: to escape text takes a third of the time that
 * the engine needs for it, and to add strings to strings, of which the sum is put together later, takes longer too. Halves
 * of surrogate pairs, which strict services refuse, become U+FFFD.
 *
 * Several may be under way within one another, if the one that was begun last is closed first.
 */
export class JsonOutput {
  readonly #start = end;
  /** What is laid aside. */
  #text = '';

  /** Characters so far. */
  get length(): number {
    return this.#text.length + end - this.#start;
  }

  /** Adds JSON text of ASCII characters. */
  add(json: string): void {
    const { length } = json;
    if (!this.#hasRoom(length)) {
      this.#text += json;
      return;
    }
    let at = end;
    for (let from = 0; from < length; from++) page[at++] = json.charCodeAt(from);
    end = at;
  }

  /** Adds a key, given as its bytes. Before the first of an object comes the brace instead of the comma. */
  addKey(key: Buffer, isFirst: boolean): void {
    const { length } = key;
    if (!this.#hasRoom(length)) {
      this.#text += (isFirst ? '{' : ',') + key.toString('latin1', 1);
      return;
    }
    let at = end;
    page[at++] = isFirst ? OPENING_BRACE : COMMA;
    for (let from = 1; from < length; from++) page[at++] = key[from] as number;
    end = at;
  }

  /** Adds any text as a JSON string. */
  addString(text: string): void {
    if (text.length > SHORT_CHARACTERS || !this.#addShort(text)) this.#addLong(text);
  }

  /** Takes back the last characters. */
  drop(characters: number): void {
    const laidAside = characters - (end - this.#start);
    end = Math.max(this.#start, end - characters);
    if (laidAside > 0) this.#text = this.#text.slice(0, -laidAside);
  }

  /** Everything that was added. */
  text(): string {
    this.#layAside();
    return this.#text;
  }

  /** Makes room for others. Nothing may be added any more. */
  close(): void {
    end = this.#start;
  }

  /** False where there is no room for it, or it has a character that is no byte. */
  #addShort(text: string): boolean {
    const { length } = text;
    if (!this.#hasRoom(ESCAPE_BYTES_MAX * SHORT_CHARACTERS + 2)) return false;
    let at = end;
    page[at++] = QUOTE;
    for (let from = 0; from < length; from++) {
      const code = text.charCodeAt(from);
      // Most are letters.
      if (code > BACKSLASH ? code < 256 : code >= 32 && code !== QUOTE && code !== BACKSLASH) page[at++] = code;
      else if (code < 256) at = addEscaped(code, at);
      else return false;
    }
    page[at++] = QUOTE;
    end = at;
    return true;
  }

  #addLong(text: string): void {
    const { length } = text;
    if (WIDE.test(text) || !this.#hasRoom(ESCAPE_BYTES_MAX * Math.min(length, STRETCH_CHARACTERS) + 2)) {
      this.#layAside();
      this.#text += JSON.stringify(text.toWellFormed());
      return;
    }
    page[end++] = QUOTE;
    if (length <= STRETCH_CHARACTERS) addStretch(text);
    else {
      for (let at = 0; at < length; at += STRETCH_CHARACTERS) {
        const stretch = text.slice(at, at + STRETCH_CHARACTERS);
        if (this.#hasRoom(ESCAPE_BYTES_MAX * stretch.length + 1)) addStretch(stretch);
      }
    }
    page[end++] = QUOTE;
  }

  /** Whether so many characters find room, if need be on an empty page. */
  #hasRoom(characters: number): boolean {
    if (characters <= PAGE_BYTES - end) return true;
    this.#layAside();
    return characters <= PAGE_BYTES - end;
  }

  #layAside(): void {
    if (end > this.#start) this.#text += page.toString('latin1', this.#start, end);
    end = this.#start;
  }
}

/** Adds a text of bytes, for which there is room however much of it is escaped. */
function addStretch(text: string): void {
  const { length } = text;
  // Copied so far ahead that it is never overtaken.
  let from = end + (ESCAPE_BYTES_MAX - 1) * length;
  const stop = from + page.write(text, from, 'latin1');
  let at = end;
  while (from < stop) {
    if (from + 4 <= stop) {
      const word = words.getInt32(from, true);
      const plain = plainBytes(word);
      words.setInt32(at, word, true);
      at += plain;
      from += plain;
      if (plain === 4) continue;
    }
    const code = page[from++] as number;
    if (ESCAPES[code] === undefined) page[at++] = code;
    else at = addEscaped(code, at);
  }
  end = at;
}

/**
 * How many bytes of a word come before the first that is a control character, a quotation mark or a backslash. With one bit
 * turned, quotation marks are next to the control characters, and all of them less than 0x21; a byte is less than another, up
 * to 0x80, where their difference has the highest bit and the byte itself has not.
 */
export function plainBytes(word: number): number {
  const turned = word ^ 0x02020202;
  const fromBackslash = word ^ 0x5c5c5c5c;
  const special = (((turned - 0x21212121) & ~turned) | ((fromBackslash - 0x01010101) & ~fromBackslash)) & 0x80808080;
  return special === 0 ? 4 : (31 - Math.clz32(special & -special)) >> 3;
}

function addEscaped(code: number, at: number): number {
  const bytes = ESCAPES[code] as Buffer;
  for (let from = 0; from < bytes.length; from++) page[at + from] = bytes[from] as number;
  return at + bytes.length;
}
