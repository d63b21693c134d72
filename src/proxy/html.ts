const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as it may stand in HTML, also inside quotes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (char) => entities[char] ?? char)
