// Renders the component of a module, sends `Hello` with its form, and prints the answer.
import { JSDOM } from 'jsdom';
import { createElement } from 'react';

const { window } = new JSDOM('<main></main>');
for (const name of ['window', 'document', 'navigator', 'FormData']) {
  Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
}
const main = window.document.querySelector('main');

/** Resolves with the first match in the document, now or after a change. */
const shown = (pattern) =>
  new Promise((resolve) => {
    const look = () => {
      const match = pattern.exec(main.innerHTML);
      if (match !== null) resolve(match);
    };
    new window.MutationObserver(look).observe(main, { subtree: true, childList: true, characterData: true });
    look();
  });

const { createRoot } = await import('react-dom/client');
const { Chat } = await import(process.argv[2]);
createRoot(main).render(createElement(Chat));
await shown(/<input/);
main.querySelector('input').value = 'Hello';
main.querySelector('form').dispatchEvent(new window.Event('submit', { bubbles: true, cancelable: true }));
const [, answer] = await shown(/ai: (Hello\. [^<]*\.)</);
console.log(answer);
process.exit();
