import { Lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { lazy } from '../elements/lazy.tsx';
import { Text } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { imageOf } from './binary-text.ts';
import { Picture } from './picture.tsx';

const Highlighted = lazy<{ text: string; language: string }>(
  () => import('./highlight.tsx'),
  ({ text }) => <Text value={text} />,
);

/** Maximum nesting depth. Deeper content is shown as source text. */
const DEPTH_MAX = 24;

/**
 * Renders Markdown from the lexer's tokens. HTML is shown as text. Only `http` and `https` links work. Only images
 * whose data is in the text are shown.
 */
export default function Markdown({ text }: { text: string }): JSX.Element {
  return <div class="markdown">{nodes(tokensOf(text), 0)}</div>;
}

function tokensOf(text: string): Token[] {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    // The nesting is too deep for the call stack of the recursive lexer.
    return [{ type: 'paragraph', raw: text, text, tokens: [{ type: 'text', raw: text, text }] }];
  }
}

function nodes(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return (tokens ?? []).map((token) => node(token as Tokens.Generic, depth));
}

function node(token: Tokens.Generic, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return <Text value={token.raw} />;
  const inside = (): ComponentChildren => nodes(token.tokens, depth + 1);
  switch (token.type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return null;
    case 'heading':
      // `<p>` is used because `<h1>` would count as a page heading.
      return <p class={`heading heading-${token.depth}`}>{inside()}</p>;
    case 'paragraph':
      return <p>{inside()}</p>;
    case 'text':
      return token.tokens === undefined ? <Text value={token.text} /> : inside();
    case 'code':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
        <pre tabIndex={0}>
          {token.lang ? <Highlighted text={token.text} language={token.lang} /> : <Text value={token.text} />}
        </pre>
      );
    case 'blockquote':
      return <blockquote>{inside()}</blockquote>;
    case 'list':
      return list(token as Tokens.List, depth);
    case 'table':
      return table(token as Tokens.Table, depth);
    case 'hr':
      return <hr />;
    case 'strong':
      return <strong>{inside()}</strong>;
    case 'em':
      return <em>{inside()}</em>;
    case 'del':
      return <del>{inside()}</del>;
    case 'codespan':
      return (
        <code>
          <Text value={token.text} />
        </code>
      );
    case 'br':
      return <br />;
    case 'link':
      return <SafeLink href={token.href}>{inside()}</SafeLink>;
    case 'image':
      return <Image source={token.href} text={token.text} />;
    case 'escape':
      return <Text value={token.text} />;
    default:
      return <Text value={token.raw} />;
  }
}

function list(token: Tokens.List, depth: number): JSX.Element {
  const items = token.items.map((item) => (
    <li>
      {item.task && <span class="task">{item.checked === true ? '☑ ' : '☐ '}</span>}
      {nodes(item.tokens, depth + 1)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table({ header, rows }: Tokens.Table, depth: number): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          {header.map((cell) => (
            <th>{nodes(cell.tokens, depth + 1)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {row.map((cell) => (
              <td>{nodes(cell.tokens, depth + 1)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SafeLink({ href, children }: { href: string; children: ComponentChildren }): JSX.Element {
  if (!/^https?:\/\//i.test(href)) return <span>{children}</span>;
  return (
    <a href={href} title={visibleText(href)} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** Shows an image in the text. One on a server becomes a link, because loading it would tell that it is viewed. */
function Image({ source, text }: { source: string; text: string }): JSX.Element {
  const image = imageOf(source);
  if (image !== undefined) return <Picture source={image} alt={text} />;
  return (
    <SafeLink href={source}>
      [image: <Text value={text === '' ? source : text} />]
    </SafeLink>
  );
}
