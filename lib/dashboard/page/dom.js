/**
 * Makes an element. Text is always text, never markup.
 *
 * @param {Record<string, string | boolean | ((event: Event) => void)>} attributes a function listens to the event of
 * that name
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== ''));
  return element;
}

/** Writes only changed text, so that selections and screen readers are not disturbed. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Invisible characters, and characters that change the direction of text. Joiners stay, because scripts and emoji need
 * them.
 */
const UNSEEN = /((?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}])/u;
/** Long names break after these. */
const BREAKS = /(?<=[:/._,;|@-])(?=[^:/._,;|@-])/u;

/** A name up to this length stays in one line, in characters. */
export const SHORT = 32;

/**
 * Text from outside, such as a name. Its direction does not affect the text beside it, and invisible characters
 * are shown as their code.
 *
 * @param whole text up to this length does not break between its parts
 */
export function foreign(text, whole = 0) {
  const all = String(text);
  const parts = all.split(UNSEEN);
  const shown = (part) => (all.length > whole ? breakable(part) : [part]);
  return make('bdi', {}, ...parts.flatMap((part, n) => (n % 2 === 1 ? [codeOf(part)] : shown(part))));
}

function codeOf(character) {
  const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
  return make('span', { class: 'unseen', title: 'A character that cannot be seen' }, `U+${code}`);
}

function breakable(text) {
  return text.split(BREAKS).flatMap((part, n) => (n === 0 ? [part] : [make('wbr'), part]));
}
