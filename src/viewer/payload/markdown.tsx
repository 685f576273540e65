import { Lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { Text } from '../elements/text.tsx';
import { visible } from '../elements/visible-text.ts';
import { pictureOf } from './binary-text.ts';

/** What is nested deeper is shown as it is written. */
const DEPTH_MAX = 24;

/**
 * Markdown as elements, made one by one from what the lexer has read: HTML in it stays text, addresses other than those of
 * the web lead nowhere, and pictures are shown only when they are in the text itself.
 */
export default function Markdown({ text }: { text: string }): JSX.Element {
  return <div class="markdown">{blocks(tokensOf(text), 0)}</div>;
}

function tokensOf(text: string): Token[] {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    // Nested so deep that the lexer gives up.
    return [{ type: 'paragraph', raw: text, text, tokens: [{ type: 'text', raw: text, text }] }];
  }
}

function blocks(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return (tokens ?? []).map((token) => block(token as Tokens.Generic, depth));
}

function block(token: Tokens.Generic, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return <Text value={token.raw} />;
  switch (token.type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return null;
    case 'heading':
      // Below the headings of the page.
      return <p class={`heading heading-${token.depth}`}>{inline(token.tokens, depth + 1)}</p>;
    case 'paragraph':
      return <p>{inline(token.tokens, depth + 1)}</p>;
    case 'text':
      return token.tokens === undefined ? <Text value={token.text} /> : inline(token.tokens, depth + 1);
    case 'code':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be reached by the keyboard.
        <pre tabIndex={0}>
          <Text value={token.text} />
        </pre>
      );
    case 'blockquote':
      return <blockquote>{blocks(token.tokens, depth + 1)}</blockquote>;
    case 'list':
      return list(token as Tokens.List, depth);
    case 'table':
      return table(token as Tokens.Table, depth);
    case 'hr':
      return <hr />;
    default:
      return <Text value={token.raw} />;
  }
}

function list(token: Tokens.List, depth: number): JSX.Element {
  const items = token.items.map((item) => (
    <li>
      {item.task && <span class="task">{item.checked === true ? '☑ ' : '☐ '}</span>}
      {blocks(item.tokens, depth + 1)}
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
            <th>{inline(cell.tokens, depth + 1)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {row.map((cell) => (
              <td>{inline(cell.tokens, depth + 1)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function inline(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return (tokens ?? []).map((token) => piece(token as Tokens.Generic, depth));
}

function piece(token: Tokens.Generic, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return <Text value={token.raw} />;
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens, depth + 1)}</strong>;
    case 'em':
      return <em>{inline(token.tokens, depth + 1)}</em>;
    case 'del':
      return <del>{inline(token.tokens, depth + 1)}</del>;
    case 'codespan':
      return (
        <code>
          <Text value={token.text} />
        </code>
      );
    case 'br':
      return <br />;
    case 'link':
      return (
        <SafeLink href={token.href} title={token.href}>
          {inline(token.tokens, depth + 1)}
        </SafeLink>
      );
    case 'image':
      return <Picture source={token.href} text={token.text} />;
    case 'escape':
      return <Text value={token.text} />;
    case 'text':
      return token.tokens === undefined ? <Text value={token.text} /> : inline(token.tokens, depth + 1);
    default:
      return <Text value={token.raw} />;
  }
}

function SafeLink({
  href,
  title,
  children,
}: {
  href: string;
  title: string;
  children: ComponentChildren;
}): JSX.Element {
  if (!/^https?:\/\//i.test(href)) return <span class="no-link">{children}</span>;
  return (
    <a href={href} title={visible(title)} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** A picture from elsewhere would tell its owner that somebody reads this. */
function Picture({ source, text }: { source: string; text: string }): JSX.Element {
  const picture = pictureOf(source);
  if (picture !== undefined) return <img class="picture" src={picture} alt={visible(text)} />;
  return (
    <SafeLink href={source} title={source}>
      [picture: <Text value={text === '' ? source : text} />]
    </SafeLink>
  );
}
