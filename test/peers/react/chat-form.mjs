// Renders the component of a module, sends `Hello` with its form, and prints the answer.
import { JSDOM } from 'jsdom';
import { createElement } from 'react';

const { window } = new JSDOM('<main></main>');
for (const name of ['window', 'document', 'navigator', 'FormData'])
  Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
const { flushSync } = await import('react-dom');
const { createRoot } = await import('react-dom/client');
const { Chat } = await import(process.argv[2]);

const main = window.document.querySelector('main');
flushSync(() => createRoot(main).render(createElement(Chat)));
main.querySelector('input').value = 'Hello';
main.querySelector('form').requestSubmit();
new window.MutationObserver(() => {
  const [, answer] = /ai: (Hello\. [^<]*\.)</.exec(main.innerHTML) ?? [];
  if (answer === undefined) return;
  console.log(answer);
  process.exit();
}).observe(main, { subtree: true, childList: true, characterData: true });
