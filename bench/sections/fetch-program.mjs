/** Times requests that are not model calls, with and without the recorder of `runspan/register`. No request is sent. */
import { configure } from 'runspan';
import { sendAddedTimes } from './added-time.mjs';

const bare = async () => undefined;
globalThis.fetch = bare;
configure({ endpoint: 'http://127.0.0.1:9' });
await import('runspan/register');
const { fetch } = globalThis;
if (fetch === bare) throw new Error('runspan/register has not replaced fetch');

const url = 'https://api.example.com/v1/items?page=2';
const post = { method: 'POST', body: JSON.stringify({ name: 'tea' }) };
const address = new URL(url);
const request = new Request(url);
const chat = {
  method: 'POST',
  body: JSON.stringify({ room: 'tea', text: 'A message in the chat of the application. '.repeat(8) }),
};
await sendAddedTimes({
  'GET, text': [() => bare(url), () => fetch(url)],
  'POST, text': [() => bare(url, post), () => fetch(url, post)],
  'POST, `URL`': [() => bare(address, post), () => fetch(address, post)],
  // The path is also one of Ollama's. The body shows that the request is not a model call.
  'POST …/api/chat': [() => bare(`${address.origin}/api/chat`, chat), () => fetch(`${address.origin}/api/chat`, chat)],
  'GET, `Request`': [() => bare(request), () => fetch(request)],
});
