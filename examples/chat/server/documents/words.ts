/** Words that are in most questions and say nothing of what is asked. */
const STOP_WORDS = new Set(
  `a an and any are as at be between by can could do does for from has have how i if in into is it its many me much my
   not of on or should so than that the their them there they this to use using was we what when where which who why
   will with would you your`.split(/\s+/),
);

/** Lower-case words, without stop words and the -s of plurals. */
export function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word));
}
