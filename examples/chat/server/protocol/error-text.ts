/** What an error of LangChain says to readers: behind it stands an address for those who write programs. */
export function textOf(error: Error): string {
  const [said = ''] = error.message.split('\n\nTroubleshooting URL: ');
  return said;
}
